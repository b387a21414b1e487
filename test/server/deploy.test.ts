/** What deploy/ says of Parley is true: settings, ports, routes, probes, drain, folders and metrics, without a cluster and without a registry. */
import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, readFileSync, readdirSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, onTestFinished, test } from 'vitest';
import { readTls } from '../../server/access/tls.ts';
import { createChatApp } from '../../server/chat/routes.ts';
import { listen } from '../../server/listener/listen.ts';
import { FLAGS } from '../../server/settings/flags.ts';
import { calledAs, helpText, readSettings } from '../../server/settings/read.ts';
import { sourceSettings } from '../../sources/node/index.ts';
import { NAMES, ROUTES } from '../support/each-listener.ts';
import { GOOD_CHAT as GOOD } from '../support/chat-body.ts';
import { FakeEngine } from '../support/fake-engine.ts';
import { postForm, postJson, send, startListeners } from '../support/listeners.ts';
import type { Started } from '../support/listeners.ts';

const DEPLOY = new URL('../../deploy/', import.meta.url);
const read = (path: string): string => readFileSync(new URL(path, DEPLOY), 'utf8');

/** What the tests look at in an object of Kubernetes; which of it is there depends on the kind. */
interface Thing {
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly labels: Readonly<Record<string, string>> };
  readonly data: Readonly<Record<string, string>>;
  readonly spec: Spec;
}
interface Spec {
  readonly ports: readonly { readonly port: number; readonly targetPort: string; readonly appProtocol: string }[];
  readonly endpoints: readonly { readonly scheme?: string }[];
  readonly targetPorts: readonly { readonly number: number }[];
  readonly selector: { readonly matchLabels: Readonly<Record<string, string>> };
  readonly ingress: readonly { readonly ports: readonly { readonly port: number }[] }[];
  readonly rules: readonly {
    readonly matches: readonly { readonly path: { readonly value: string } }[];
    readonly backendRefs: readonly { readonly kind?: string; readonly name: string; readonly port?: number }[];
  }[];
  readonly triggers: readonly { readonly metadata: Readonly<Record<string, string>> }[];
  readonly groups: readonly { readonly rules: readonly { readonly expr: string }[] }[];
  readonly template: { readonly metadata: Thing['metadata']; readonly spec: Pod };
}
interface Pod {
  readonly enableServiceLinks: boolean;
  readonly terminationGracePeriodSeconds: number;
  readonly securityContext: { readonly runAsUser: number; readonly runAsGroup: number; readonly runAsNonRoot: boolean };
  readonly containers: readonly [Container];
}
interface Container {
  readonly env: readonly { readonly name: string }[] | null;
  readonly ports: readonly { readonly name: string; readonly containerPort: number }[];
  readonly volumeMounts: readonly { readonly mountPath: string; readonly readOnly?: boolean }[];
  readonly securityContext: Readonly<Record<string, unknown>>;
  readonly lifecycle: { readonly preStop: { readonly sleep: { readonly seconds: number } } };
  readonly startupProbe: Probe;
  readonly readinessProbe: Probe;
  readonly livenessProbe: Probe;
}
interface Probe {
  readonly httpGet: { readonly path: string; readonly port: string; readonly scheme: string };
}

const RENDERS = readdirSync(new URL('helm/renders/', DEPLOY)).flatMap((file) => /^(\w+)\.values\.yaml$/.exec(file)?.[1] ?? []);
const rendered = (name: string): readonly Thing[] => JSON.parse(read(`helm/renders/${name}.json`)) as Thing[];
const ofKind = (things: readonly Thing[], kind: string): readonly Thing[] => things.filter((thing) => thing.kind === kind);

/** The parts of a render that every test wants; `settings` as the server reads them. */
function parts(name: string) {
  const things = rendered(name);
  const pod = ofKind(things, 'Deployment')[0]!.spec.template;
  const file = ofKind(things, 'ConfigMap').find(({ data }) => 'settings.json' in data)!.data['settings.json']!;
  const settings = readSettings(['--config', 'settings.json'], {}, () => file);
  const models = { chat: settings.chatModel, speech: settings.speechModel, transcription: settings.transcriptionModel };
  const ports = { chat: settings.port, speech: settings.speechPort, transcription: settings.transcriptionPort };
  const served = NAMES.filter((task) => models[task] !== 'none');
  const scheme = settings.tlsCert === undefined ? 'http' : 'https';
  return { things, pod, container: pod.spec.containers[0], settings, served, ports, scheme };
}

/** Variables of the server's own that a text names. */
const variablesIn = (text: string): string[] => [...new Set(text.match(/\bPARLEY_[A-Z_]+\b/g))].filter((name) => !name.endsWith('_'));
const VARIABLES: ReadonlySet<string> = new Set([
  ...FLAGS.map(({ name }) => `PARLEY_${name.toUpperCase().replaceAll('-', '_')}`),
  'PARLEY_CACHE',
]);

describe('the renders', () => {
  test('are of the chart as it is: deploy/helm/check.sh --write was run after the last change', () => {
    const inputs = JSON.parse(read('helm/renders/inputs.json')) as Record<string, string>;
    const files = readdirSync(new URL('helm/parley/', DEPLOY), { recursive: true, withFileTypes: true })
      .filter((entry) => !entry.isDirectory())
      .map(({ parentPath, name }) => `${parentPath}/${name}`.slice(fileURLToPath(new URL('helm/', DEPLOY)).length).replace(/\/+/g, '/'));
    expect(Object.keys(inputs).sort()).toEqual([...files, ...RENDERS.map((name) => `renders/${name}.values.yaml`)].sort());
    for (const [path, hash] of Object.entries(inputs))
      expect(
        createHash('sha256')
          .update(read(`helm/${path}`))
          .digest('hex'),
        path,
      ).toBe(hash);
  });

  test.each(RENDERS)('%s: ports are the same everywhere, and each listener has its own Service, pool, route and trigger', (name) => {
    const { things, pod, container, served, ports, scheme } = parts(name);
    const numbers = served.map((task) => ports[task]);
    expect(container.ports.map(({ name: task, containerPort }) => [task, containerPort])).toEqual(
      served.map((task) => [task, ports[task]]),
    );
    expect(ofKind(things, 'Service').map(({ spec }) => spec.ports.map(({ port, targetPort }) => [targetPort, port]))).toEqual(
      served.map((task) => [[task, ports[task]]]),
    );
    for (const { spec } of ofKind(things, 'NetworkPolicy')) expect(spec.ingress[0]!.ports.map(({ port }) => port)).toEqual(numbers);
    const services = ofKind(things, 'Service').map(({ metadata }) => metadata.name);
    const pools = ofKind(things, 'InferencePool');
    if (pools.length > 0)
      expect(pools.map(({ spec }) => spec.targetPorts.map(({ number }) => number))).toEqual(numbers.map((port) => [port]));
    for (const { spec } of pools) expect(pod.metadata.labels).toMatchObject(spec.selector.matchLabels);
    for (const [i, route] of ofKind(things, 'HTTPRoute').entries()) {
      const { kind, name: target, port } = route.spec.rules[0]!.backendRefs[0]!;
      expect([kind, target, port]).toEqual(
        pools.length > 0 ? ['InferencePool', pools[i]!.metadata.name, undefined] : [undefined, services[i], numbers[i]],
      );
    }
    const asked = ofKind(things, 'ScaledObject').flatMap(({ spec }) => spec.triggers.flatMap(({ metadata: { url } }) => url ?? []));
    if (asked.length > 0) {
      const urls = served.map((_, i) => `${scheme}://${services[i]}.inference.svc:${numbers[i]}/metrics`);
      expect([...new Set(asked)]).toEqual(urls);
    }
  });

  test.each(RENDERS)('%s: whoever asks the pods does so by HTTPS where they serve it', (name) => {
    const { things, container, scheme } = parts(name);
    for (const { httpGet } of [container.startupProbe, container.readinessProbe, container.livenessProbe])
      expect(httpGet.scheme).toBe(scheme.toUpperCase());
    for (const { spec } of ofKind(things, 'Service')) expect(spec.ports[0]!.appProtocol).toBe(scheme);
    for (const { spec } of ofKind(things, 'ServiceMonitor')) expect(spec.endpoints[0]!.scheme ?? 'http').toBe(scheme);
  });

  test.each(RENDERS)('%s: the drain ends before the grace period, and pods keep to their limits', (name) => {
    const { pod, container, settings } = parts(name);
    const sum = container.lifecycle.preStop.sleep.seconds + settings.drainDelay + settings.drainTimeout;
    expect(pod.spec.terminationGracePeriodSeconds).toBeGreaterThan(sum);
    expect(pod.metadata.labels['llm-d.ai/engine-type']).toBe('sglang');
    // A Service named parley would set PARLEY_PORT=tcp://... in the pods.
    expect(pod.spec.enableServiceLinks).toBe(false);
    expect(container.securityContext).toEqual({
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: true,
      capabilities: { drop: ['ALL'] },
    });
    expect(variablesIn(JSON.stringify(container.env)).filter((variable) => !VARIABLES.has(variable))).toEqual([]);
  });
});

describe('the image', () => {
  const dockerfile = read('image/Dockerfile');
  const environment = Object.fromEntries([...dockerfile.matchAll(/^(?:ENV| {3}) (\w+)=(\S+)/gm)].map(([, name, value]) => [name!, value!]));

  test('writes to nothing but the volumes of the chart, as the user of the chart', () => {
    const { pod, container } = parts('cpu');
    const writable = container.volumeMounts.flatMap(({ mountPath, readOnly }) => (readOnly ? [] : [mountPath]));
    const { hubCache, ownCache } = sourceSettings(environment);
    const caches = ['XDG_CACHE_HOME', 'MESA_SHADER_CACHE_DIR', '__GL_SHADER_DISK_CACHE_PATH', 'npm_config_cache'].map(
      (name) => environment[name]!,
    );
    for (const folder of [hubCache, ownCache, ...caches])
      expect(
        writable.some((mount) => `${folder}/`.startsWith(`${mount}/`)),
        folder,
      ).toBe(true);
    const { runAsUser, runAsGroup, runAsNonRoot } = pod.spec.securityContext;
    expect([/^USER (.*)$/m.exec(dockerfile)?.[1], runAsNonRoot]).toEqual([`${runAsUser}:${runAsGroup}`, true]);
  });

  test('opens the ports and has the folders that there are', () => {
    const ports = FLAGS.flatMap(({ name, default: port }) => (/^(.+-)?port$/.test(name) ? [port] : []));
    expect(/^EXPOSE (.*)$/m.exec(dockerfile)?.[1]?.split(' ').map(Number)).toEqual(ports);
    const copied = [...dockerfile.matchAll(/\/parley\/([\w.-]+)/g)].map(([, path]) => path!);
    const made = ['node_modules', 'dist', 'sbom.cdx.json'];
    expect(copied.filter((path) => !made.includes(path) && !existsSync(new URL(`../${path}`, DEPLOY)))).toEqual([]);
    expect(environment['NVIDIA_DRIVER_CAPABILITIES']).toBe('compute,utility,graphics');
  });

  test('and the compose file and the unit name settings that there are, and wait for the drain', () => {
    for (const file of ['image/Dockerfile', 'image/ask.sh', 'image/healthcheck.mjs', 'compose.yaml', 'systemd/parley.service'])
      expect(
        variablesIn(read(file)).filter((name) => !VARIABLES.has(name)),
        file,
      ).toEqual([]);
    const { drainDelay, drainTimeout } = readSettings([], {}, () => '');
    const waits = [/stop_grace_period: (\d+)s/.exec(read('compose.yaml')), /^TimeoutStopSec=(\d+)$/m.exec(read('systemd/parley.service'))];
    for (const wait of waits) expect(Number(wait?.[1])).toBeGreaterThan(drainDelay + drainTimeout);
  });

  test('takes no file of settings, which may hold keys, and neither does the repository', () => {
    expect(read('compose.yaml')).toContain('env_file:\n    - path: .env\n      required: false\n');
    for (const file of ['image/Dockerfile.dockerignore', '../.gitignore']) expect(read(file).split('\n'), file).toContain('deploy/.env');
  });

  test('starts the server by its one launcher', async () => {
    expect(dockerfile).toContain('ENTRYPOINT ["node", "/parley/deploy/parley.mjs"]');
    expect(read('systemd/parley.service')).toContain('/deploy/parley.mjs\n');
    expect(await run('parley.mjs', ['--help'])).toEqual({ code: 0, text: `${helpText()}\n` });
  });

  test('is healthy when all its listeners are', async () => {
    const { engine, chat, speech, transcription } = await startListeners();
    const ports = [chat, speech, transcription].map((url) => new URL(url).port);
    const [chatPort, speechPort, transcriptionPort] = ports;
    expect(await run('image/healthcheck.mjs', ports)).toEqual({ code: 0, text: '' });
    engine.state = 'loading';
    const lines = [`port ${chatPort}: /health answers 503\n`, `port ${transcriptionPort}: /health answers 503\n`];
    const environment = { PARLEY_PORT: chatPort!, PARLEY_SPEECH_PORT: speechPort!, PARLEY_TRANSCRIPTION_PORT: transcriptionPort! };
    const answer = await run('image/healthcheck.mjs', [], { ...environment, PARLEY_SPEECH_MODEL: 'none' });
    expect(answer).toEqual({ code: 1, text: lines.join('') });
  });

  test('is healthy with HTTPS too', async () => {
    const [cert, key] = ['server.pem', 'server.key'].map((name) => new URL(`../fixtures/tls/${name}`, import.meta.url).pathname);
    const tls = readTls({ cert: cert!, key: key! }, (path) => readFileSync(path, 'utf8'), calledAs(new Map()));
    const listener = await listen(createChatApp({ engine: new FakeEngine(), modelId: 'parley-chat' }), { host: '127.0.0.1', port: 0, tls });
    onTestFinished(() => listener.destroy());
    const environment = { PARLEY_TLS_CERT: cert!, PARLEY_TLS_KEY: key! };
    expect(await run('image/healthcheck.mjs', [String(listener.port)], environment)).toEqual({ code: 0, text: '' });
  });
});

describe('what routes and watches', () => {
  test.each(RENDERS)('%s: probes and routes are those of the listeners', async (name) => {
    const { things, container, served } = parts(name);
    const started = await startListeners();
    for (const { httpGet } of [container.startupProbe, container.readinessProbe, container.livenessProbe])
      expect((await send(started[httpGet.port as (typeof served)[number]] + httpGet.path)).status, httpGet.path).toBe(200);
    for (const { metadata, spec } of ofKind(things, 'HTTPRoute')) {
      const task = metadata.labels['parley/listener'] as (typeof served)[number];
      const paths = spec.rules[0]!.matches.map(({ path }) => path.value);
      expect(paths).toContain(ROUTES[task]);
      const document = JSON.parse((await send(`${started[task]}/openapi.json`)).text) as { paths: Record<string, unknown> };
      expect(paths.filter((path) => !(path in document.paths))).toEqual([]);
    }
  });

  test('every metric that is named is emitted', async () => {
    const started = await startListeners();
    const emitted = await scraped(started);
    const fleet = rendered('fleet');
    const dashboard = JSON.parse(read('observability/dashboard.json')) as Dashboard;
    const named = {
      alerts: ofKind(fleet, 'PrometheusRule').flatMap(({ spec }) => spec.groups.flatMap(({ rules }) => rules.map(({ expr }) => expr))),
      dashboard: [
        ...dashboard.panels.flatMap(({ targets }) => targets.map(({ expr }) => expr)),
        ...dashboard.templating.list.flatMap(({ definition }) => definition ?? []),
      ],
      triggers: RENDERS.flatMap(rendered)
        .filter(({ kind }) => kind === 'ScaledObject')
        .flatMap(({ spec }) => spec.triggers.map(({ metadata }) => metadata['valueLocation'] ?? metadata['query']!)),
    };
    for (const [where, expressions] of Object.entries(named)) {
      expect(expressions.length, where).toBeGreaterThan(3);
      // `up` is Prometheus' own.
      for (const expression of expressions.filter((text) => !text.startsWith('up{'))) {
        const names = expression.match(/\b(?:sglang:|parley_)\w+/g) ?? [];
        expect(names.length, expression).toBeGreaterThan(0);
        expect(
          names.filter((name) => !emitted.has(name)),
          `${where}: ${expression}`,
        ).toEqual([]);
      }
    }
  });

  test('the alert for refusals looks at the routes that compute', async () => {
    const [, text = ''] = /ParleyRefusesRequests[\s\S]*?route=~"([^"]+)"/.exec(read('observability/alerts.yaml')) ?? [];
    const computing = new RegExp(`^(?:${text})$`);
    const started = await startListeners();
    await postJson(started.chat + ROUTES.chat, GOOD);
    await postJson(`${started.chat}/v1/completions`, { model: 'parley-chat', prompt: 'Hi' });
    await postJson(started.speech + ROUTES.speech, { model: 'tts-1', input: 'Hello.', voice: 'oni' });
    await postForm(started.transcription + ROUTES.transcription, [['model', 'whisper-1']]);
    for (const task of NAMES) await send(`${started[task]}/health`);
    const routes = (await Promise.all(NAMES.map((task) => send(`${started[task]}/metrics`)))).flatMap(({ text: metrics }) =>
      [...metrics.matchAll(/^parley_requests_total\{route="([^"]+)"/gm)].map(([, route]) => route!),
    );
    const found = [...new Set(routes)].filter((route) => computing.test(route)).sort();
    expect(found).toEqual(['/audio/speech', '/audio/transcriptions', '/chat/completions', '/completions']);
    expect(routes).toContain('/health');
  });
});

interface Dashboard {
  readonly panels: readonly { readonly targets: readonly { readonly expr: string }[] }[];
  readonly templating: { readonly list: readonly { readonly definition?: string }[] };
}

/** The names of all series that the three listeners have, by what they say of themselves; a histogram has three. */
async function scraped(started: Started): Promise<ReadonlySet<string>> {
  const texts = await Promise.all(NAMES.map(async (task) => (await send(`${started[task]}/metrics`)).text));
  const declared = texts.flatMap((text) => [...text.matchAll(/^# TYPE (\S+) (\w+)$/gm)]);
  return new Set(
    declared.flatMap(([, name, kind]) => (kind === 'histogram' ? ['_bucket', '_sum', '_count'].map((end) => name! + end) : [name!])),
  );
}

/** Runs a script of deploy/ and returns what it prints. */
function run(script: string, argv: readonly string[], environment: Readonly<Record<string, string>> = {}) {
  return new Promise<{ readonly code: number | string; readonly text: string }>((resolve) => {
    const env = { ...process.env, ...environment };
    execFile(process.execPath, [fileURLToPath(new URL(script, DEPLOY)), ...argv], { env }, (error, text) =>
      resolve({ code: error?.code ?? 0, text }),
    );
  });
}
