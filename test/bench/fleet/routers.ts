/** Routers that exist, started in front of workers: how each is had, told of the workers, and asked. What is not here is skipped with its reason. */
import { spawn, spawnSync } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, existsSync, mkdirSync, mkdtempSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { setTimeout as sleep } from 'node:timers/promises';
import { postJson, send } from '../../support/listeners.ts';
import type { FleetTask, Worker } from './workers.ts';

/** Where the wheels lie: outside the repository. */
const VENVS = process.env['PARLEY_ROUTERS'] ?? join(tmpdir(), 'parley-routers');
const REQUIREMENTS = fileURLToPath(new URL('./requirements/', import.meta.url));
const START_MS = 90_000;
const KEY = 'sk-fleet';

export interface Router {
  /** Base addresses without /v1, of the tasks that it routes. */
  readonly base: Readonly<Partial<Record<FleetTask, string>>>;
  readonly headers: Readonly<Record<string, string>>;
  /** What it wrote. */
  readonly lines: readonly string[];
  stop(): Promise<void>;
}

export interface RouterKind {
  readonly name: string;
  /** Why it cannot be had here; undefined when it can. */
  missing(): string | undefined;
  start(workers: readonly Worker[]): Promise<Router>;
}

/** A Python environment with pinned wheels, installed at its first use; its reason where that fails. */
function venv(name: string): string | undefined {
  const folder = join(VENVS, name);
  const whole = join(folder, 'installed');
  if (existsSync(whole)) return undefined;
  mkdirSync(VENVS, { recursive: true });
  const made = spawnSync('python3', ['-m', 'venv', folder], { encoding: 'utf8' });
  if (made.status !== 0) return `python3 -m venv failed: ${made.error?.message ?? made.stderr.trim()}`;
  const pip = ['install', '--quiet', '--disable-pip-version-check', '--no-deps', '--only-binary=:all:', '--require-hashes', '-r', join(REQUIREMENTS, `${name}.txt`)]; // prettier-ignore
  const got = spawnSync(join(folder, 'bin', 'pip'), pip, { encoding: 'utf8' });
  if (got.status !== 0) return `pip could not install ${name}: ${got.stderr.trim().split('\n').at(-1)}`;
  writeFileSync(whole, '');
  return undefined;
}

const tool = (command: string): string | undefined =>
  spawnSync(command, ['-v']).error ? `${command} is not installed (apt-get install ${command})` : undefined;

async function freePorts(count: number): Promise<number[]> {
  const servers = Array.from({ length: count }, () => createServer().listen(0, '127.0.0.1'));
  await Promise.all(servers.map((server) => once(server, 'listening')));
  const ports = servers.map((server) => (server.address() as AddressInfo).port);
  await Promise.all(servers.map((server) => once(server.close(), 'close')));
  return ports;
}

/** Starts a process; its router is ready when `isReady` says so of its answers. */
async function started(
  command: string,
  argv: readonly string[],
  base: Router['base'],
  {
    environment = {},
    headers = {},
    isReady,
  }: { readonly environment?: Record<string, string>; readonly headers?: Record<string, string>; isReady(): Promise<boolean> },
): Promise<Router> {
  const child: ChildProcess = spawn(command, argv, { stdio: ['ignore', 'pipe', 'pipe'], env: { ...process.env, ...environment } });
  const lines: string[] = [];
  for (const stream of [child.stdout!, child.stderr!]) stream.on('data', (chunk: Buffer) => lines.push(chunk.toString()));
  const ended = once(child, 'close');
  const until = performance.now() + START_MS;
  while (!(await isReady().catch(() => false))) {
    if (child.exitCode !== null || performance.now() > until) {
      child.kill('SIGKILL');
      throw new Error(`${command} did not get ready:\n${lines.join('').slice(-2000)}`);
    }
    await sleep(200);
  }
  const stop = async (): Promise<void> => {
    child.kill('SIGTERM');
    const timer = setTimeout(() => child.kill('SIGKILL'), 3000);
    await ended;
    clearTimeout(timer);
  };
  return { base, headers, lines, stop };
}

const answers = async (base: string, model: string, headers: Record<string, string> = {}): Promise<boolean> => {
  const body = JSON.stringify({ model, messages: [{ role: 'user', content: 'Hi' }], max_tokens: 1 });
  return (await send(`${base}/v1/chat/completions`, { body, headers: { 'content-type': 'application/json', ...headers } })).status === 200;
};

/** Flags that both of the Rust routers have: checked every second, so that a worker that leaves is seen before it has gone. */
const HEALTH = [
  '--health-check-interval-secs',
  '1',
  '--health-check-timeout-secs',
  '2',
  '--health-failure-threshold',
  '1',
  '--health-success-threshold',
  '1',
];
/** As docs/fleet.md says: workers x (running + waiting). */
const LIMITS = ['--max-concurrent-requests', '256', '--queue-size', '1024'];

/** Whether a router knows of that many healthy workers. */
async function knows(base: string, count: number): Promise<boolean> {
  const { text } = await send(`${base}/workers`);
  const { workers } = JSON.parse(text) as {
    readonly workers: readonly { readonly is_healthy?: boolean; readonly healthy?: boolean; readonly status?: string }[];
  };
  return workers.filter((worker) => worker.is_healthy ?? worker.healthy ?? worker.status === 'ready').length >= count;
}

const sglangRouter: RouterKind = {
  name: 'sglang-router',
  missing: () => venv('sglang-router'),
  start: async (workers) => {
    const [port, metrics] = await freePorts(2);
    const base = `http://127.0.0.1:${port}`;
    const argv = ['-m', 'sglang_router.launch_router', '--host', '127.0.0.1', '--port', String(port), '--policy', 'cache_aware', ...HEALTH, ...LIMITS, '--prometheus-port', String(metrics), '--worker-urls', ...workers.map((worker) => worker.base.chat)]; // prettier-ignore
    return started(join(VENVS, 'sglang-router', 'bin', 'python'), argv, { chat: base }, {
      isReady: async () => (await knows(base, workers.length)) && answers(base, 'parley-chat'),
    }); // prettier-ignore
  },
};

/** Two models behind one router: that takes its mode for several, which is told of the workers once it runs. */
const smg: RouterKind = {
  name: 'smg',
  missing: () => venv('smg'),
  start: async (workers) => {
    const [port, metrics] = await freePorts(2);
    const base = `http://127.0.0.1:${port}`;
    const urls = workers.flatMap((worker) => [worker.base.chat, worker.base.transcription]);
    const argv = ['launch', '--host', '127.0.0.1', '--port', String(port), '--policy', 'cache_aware', '--enable-igw', ...HEALTH, ...LIMITS, '--prometheus-port', String(metrics)]; // prettier-ignore
    let told = false;
    const isReady = async (): Promise<boolean> => {
      if (!told) for (const url of urls) told = (await postJson(`${base}/workers`, { url })).status < 300;
      return (await knows(base, urls.length)) && answers(base, 'parley-chat');
    };
    return started(join(VENVS, 'smg', 'bin', 'smg'), argv, { chat: base, transcription: base }, { isReady });
  },
};

/** A front and its servers for each task. */
type Front = { readonly task: FleetTask; readonly port: number; readonly servers: readonly string[] };

async function fronts(workers: readonly Worker[]): Promise<readonly Front[]> {
  const tasks = ['chat', 'speech', 'transcription'] as const;
  const ports = await freePorts(tasks.length);
  return tasks.map((task, i) => ({ task, port: ports[i]!, servers: workers.map((worker) => new URL(worker.base[task]).host) }));
}

const basesOf = (all: readonly Front[]): Router['base'] =>
  Object.fromEntries(all.map(({ task, port }) => [task, `http://127.0.0.1:${port}`]));

/** A configuration file in a folder of its own. */
function written(name: string, text: string): string {
  const path = join(mkdtempSync(join(tmpdir(), 'parley-fleet-')), name);
  writeFileSync(path, text);
  return path;
}

/** docs/fleet.md has the same lines. */
export function haproxyConfig(all: readonly Front[]): string {
  const sections = all.map(({ task, port, servers }) =>
    [
      `listen ${task}`,
      `  bind 127.0.0.1:${port}`,
      '  balance leastconn',
      '  option httpchk GET /health',
      '  option redispatch',
      '  retries 3',
      '  retry-on conn-failure empty-response 503',
      ...servers.map((server, i) => `  server w${i} ${server} check inter 500ms fall 1 rise 1`),
    ].join('\n'),
  );
  return `defaults\n  mode http\n  timeout connect 2s\n  timeout client 600s\n  timeout server 600s\n  timeout check 2s\n\n${sections.join('\n\n')}\n`;
}

const haproxy: RouterKind = {
  name: 'haproxy',
  missing: () => tool('haproxy'),
  start: async (workers) => {
    const all = await fronts(workers);
    const base = basesOf(all);
    return started('haproxy', ['-db', '-f', written('haproxy.cfg', haproxyConfig(all))], base, {
      isReady: () => answers(base.chat!, 'parley-chat'),
    });
  },
};

/** docs/fleet.md has the same lines. */
export function nginxConfig(all: readonly Front[], folder: string): string {
  const sections = all.map(({ task, port, servers }) =>
    [
      `  upstream ${task} {`,
      '    least_conn;',
      ...servers.map((server) => `    server ${server} max_fails=1 fail_timeout=2s;`),
      '  }',
      '  server {',
      `    listen 127.0.0.1:${port};`,
      '    client_max_body_size 32m;',
      '    location / {',
      `      proxy_pass http://${task};`,
      '      proxy_http_version 1.1;',
      '      proxy_set_header Connection "";',
      '      proxy_set_header Host $http_host;',
      '      proxy_buffering off;',
      '      proxy_read_timeout 600s;',
      '      proxy_next_upstream error http_503 non_idempotent;',
      '    }',
      '  }',
    ].join('\n'),
  );
  const paths = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map((kind) => `  ${kind}_temp_path ${folder}/${kind};`);
  return `daemon off;\npid ${folder}/pid;\nerror_log ${folder}/error.log;\nevents {}\nhttp {\n  access_log off;\n${paths.join('\n')}\n${sections.join('\n')}\n}\n`;
}

const nginx: RouterKind = {
  name: 'nginx',
  missing: () => tool('nginx'),
  start: async (workers) => {
    const all = await fronts(workers);
    const base = basesOf(all);
    const folder = mkdtempSync(join(tmpdir(), 'parley-fleet-'));
    // Started by root, its workers are another user, who keeps bodies here.
    chmodSync(folder, 0o755);
    const path = written('nginx.conf', nginxConfig(all, folder));
    return started('nginx', ['-p', folder, '-c', path], base, { isReady: () => answers(base.chat!, 'parley-chat') });
  },
};

const MODELS = { chat: 'parley-chat', speech: 'parley-speech', transcription: 'parley-transcribe' } as const;

/** docs/fleet.md has the same lines. */
export function litellmConfig(workers: readonly Worker[]): string {
  const row = (task: FleetTask, url: string): string[] => [
    `  - model_name: ${MODELS[task]}`,
    '    litellm_params:',
    `      model: openai/${MODELS[task]}`,
    `      api_base: ${url}/v1`,
    '      api_key: none',
    ...(task === 'chat' ? [] : ['    model_info:', `      mode: ${task === 'speech' ? 'audio_speech' : 'audio_transcription'}`]),
  ];
  const rows = workers.flatMap(({ base }) => (['chat', 'speech', 'transcription'] as const).flatMap((task) => row(task, base[task])));
  return ['model_list:', ...rows, 'router_settings:', '  num_retries: 5', '  retry_after: 0', '  allowed_fails: 0', '  cooldown_time: 5', 'litellm_settings:', '  telemetry: false', ''].join('\n'); // prettier-ignore
}

const litellm: RouterKind = {
  name: 'litellm',
  missing: () => venv('litellm'),
  start: async (workers) => {
    const [port] = await freePorts(1);
    const base = `http://127.0.0.1:${port}`;
    const argv = ['--config', written('litellm.yaml', litellmConfig(workers)), '--host', '127.0.0.1', '--port', String(port)];
    const headers = { authorization: `Bearer ${KEY}` };
    // Without these it fetches a table of prices from the network.
    const environment = { LITELLM_LOCAL_MODEL_COST_MAP: 'True', LITELLM_MASTER_KEY: KEY, LITELLM_MODE: 'PRODUCTION' };
    return started(join(VENVS, 'litellm', 'bin', 'litellm'), argv, { chat: base, speech: base, transcription: base }, {
      environment,
      headers,
      isReady: () => answers(base, 'parley-chat', headers),
    }); // prettier-ignore
  },
};

export const ROUTERS: readonly RouterKind[] = [sglangRouter, smg, haproxy, nginx, litellm];
