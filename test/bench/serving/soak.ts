/** Requests of every kind against a live server, a third of which go away midway, and what the server holds before and after. */
import { readFileSync } from 'node:fs';
import { Agent, request as httpRequest } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import type { EngineStatus, MemoryPlan } from '../../../engine/api.ts';
import { createRng } from '../../../engine/util/rng.ts';
import type { Rng } from '../../../engine/util/rng.ts';
import { COLLECT } from './collect-garbage.ts';
import { JSON_TYPE, postJson, send } from '../../support/listeners.ts';

const MODEL = 'parley-chat';
const CLIENTS = 24;
const SUBJECTS = ['a dog', 'the sea', 'bread', 'a train', 'the moon', 'an old house', 'rain', 'a library', 'two friends', 'a garden'];
/** About 300 tokens that many requests begin with. */
const HOUSE_RULES = 'You are Parley. Be kind, be short, and say so when you do not know something. '.repeat(16);
const WEATHER = { name: 'weather', parameters: { type: 'object', properties: { town: { enum: ['Rome', 'Oslo'] }, hot: { type: 'boolean' } }, required: ['town', 'hot'], additionalProperties: false } }; // prettier-ignore
const ANIMAL = { type: 'object', properties: { name: { type: 'string', maxLength: 12 }, wild: { type: 'boolean' } }, required: ['name', 'wild'], additionalProperties: false }; // prettier-ignore

interface Ask {
  readonly path: string;
  readonly body: Readonly<Record<string, unknown>>;
}

const chat = (content: string, more: Readonly<Record<string, unknown>> = {}): Ask => ({
  path: '/chat/completions',
  body: { model: MODEL, messages: [{ role: 'user', content }], max_tokens: 16, ...more },
});

/** What is asked, by kind; `content` differs from request to request. */
const KINDS: Readonly<Record<string, (content: string, rng: Rng) => Ask>> = {
  plain: (content) => chat(content, { temperature: 0 }),
  stream: (content) => chat(content, { stream: true, stream_options: { include_usage: true }, max_tokens: 24 }),
  tools: (content) => chat(content, { tools: [{ type: 'function', function: WEATHER }], tool_choice: 'required', parallel_tool_calls: false, stream: true, max_tokens: 60 }), // prettier-ignore
  schema: (content) => chat(content, { response_format: { type: 'json_schema', json_schema: { name: 'animal', schema: ANIMAL } }, max_tokens: 60 }), // prettier-ignore
  logprobs: (content) => chat(content, { logprobs: true, top_logprobs: 5, max_tokens: 8 }),
  choices: (content, rng) => chat(content, { n: 3, seed: rng.integer(1 << 30), max_tokens: 8 }),
  penalties: (content, rng) => chat(content, { presence_penalty: 0.5, frequency_penalty: 0.5, repetition_penalty: 1.1, logit_bias: { [rng.integer(4000)]: -5 }, stream: true }), // prettier-ignore
  prefix: (content) => ({
    path: '/chat/completions',
    body: { model: MODEL, messages: [{ role: 'system', content: HOUSE_RULES }, { role: 'user', content }], max_tokens: 12, temperature: 0, stream: true }, // prettier-ignore
  }),
  completion: (content) => ({ path: '/completions', body: { model: MODEL, prompt: [content, `${content} again`], max_tokens: 8, stop: ['.'] } }), // prettier-ignore
};
const NAMES = Object.keys(KINDS);

/** What a server holds when it is idle and its cache is flushed. */
export interface Holdings {
  readonly gpuBuffers: number;
  readonly gpuBytes: number;
  /** What the plan says that all models may take. */
  readonly gpuPlanned: number;
  readonly kvPagesUsed: number;
  /** Resident bytes of the listeners' process and of the engine's; 0 where the system does not tell. */
  readonly serverBytes: number;
  readonly engineBytes: number;
}

export interface SoakReport {
  readonly before: Holdings;
  readonly after: Holdings;
  /** Answers by kind, and requests that went away. */
  readonly counts: Readonly<Record<string, number>>;
  /** What should not have happened, e.g. "tools: 500 ...". */
  readonly problems: readonly string[];
  readonly seconds: number;
}

export interface SoakOptions {
  /** Base address of the chat listener, ending in /v1. */
  readonly url: string;
  readonly pid: number;
  /** Both processes heed COLLECT (soak-server.ts): what is resident is then what is held. */
  readonly collects?: boolean;
  readonly requests: number;
  /** Requests before `before` is taken. */
  readonly warm: number;
  /** Told every 500 requests. */
  readonly onProgress?: (done: number) => void;
}

/** Sends `warm` requests, looks, sends the others, and looks again. */
export async function soak({ url, pid, collects = false, requests, warm, onProgress }: SoakOptions): Promise<SoakReport> {
  const agent = new Agent({ keepAlive: true, maxSockets: CLIENTS });
  const counts: Record<string, number> = {};
  const problems: string[] = [];
  const from = performance.now();
  let next = 0;
  const client = async (until: number): Promise<void> => {
    while (next < until) {
      const index = next++;
      const kind = NAMES[index % NAMES.length]!;
      const outcome = await one(url, agent, kind, index);
      counts[outcome.name] = (counts[outcome.name] ?? 0) + 1;
      if (outcome.problem !== undefined) problems.push(`request ${index}, ${kind}: ${outcome.problem}`);
      if (index % 500 === 499) onProgress?.(index + 1);
    }
  };
  const run = async (until: number): Promise<Holdings> => {
    await Promise.all(Array.from({ length: CLIENTS }, () => client(until)));
    return holdings(url, pid, collects);
  };
  const before = await run(warm);
  const after = await run(requests);
  agent.destroy();
  return { before, after, counts, problems, seconds: (performance.now() - from) / 1000 };
}

interface Outcome {
  readonly name: string;
  readonly problem?: string;
}

/** One request; every third goes away, some before anything came and some in the middle. */
async function one(url: string, agent: Agent, kind: string, index: number): Promise<Outcome> {
  const rng = createRng(index);
  const { path, body } = KINDS[kind]!(`Tell me about ${SUBJECTS[index % SUBJECTS.length]!} and the number ${index}.`, rng);
  const leaves = Math.floor(index / NAMES.length) % 3 === 2;
  return new Promise((resolve) => {
    let left = false;
    const request = httpRequest(`${url}${path}`, { method: 'POST', agent, headers: JSON_TYPE }, (response) => {
      const chunks: Buffer[] = [];
      response.on('data', (chunk: Buffer) => {
        chunks.push(chunk);
        if (leaves && body['stream'] === true) leave();
      });
      response.on('error', () => left || resolve({ name: kind, problem: 'the answer broke off' }));
      response.on('end', () => {
        if (left) return;
        const text = Buffer.concat(chunks).toString('utf8');
        const problem = problemOf(response.statusCode ?? 0, text, body);
        resolve({ name: kind, ...(problem !== undefined && { problem }) });
      });
    });
    const leave = (): void => {
      left = true;
      request.destroy();
      resolve({ name: 'went away' });
    };
    request.on('error', (error) => left || resolve({ name: kind, problem: error.message }));
    request.end(JSON.stringify(body));
    if (leaves && body['stream'] !== true) setTimeout(leave, rng.integer(150));
  });
}

function problemOf(status: number, text: string, body: Readonly<Record<string, unknown>>): string | undefined {
  if (status !== 200) return `${status} ${text.slice(0, 200)}`;
  const whole = body['stream'] === true ? text.trimEnd().endsWith('data: [DONE]') && !text.includes('"error"') : text.startsWith('{');
  return whole ? undefined : `not a whole answer: ...${text.slice(-200)}`;
}

interface ServerInfo {
  readonly status: EngineStatus;
  readonly memory_plan: MemoryPlan;
}

/** Waits until nothing runs, empties the prefix cache and looks; memory is the least of some moments. `headers` carry the key where one is set. */
export async function holdings(
  url: string,
  pid: number,
  collects: boolean,
  headers: Readonly<Record<string, string>> = {},
): Promise<Holdings> {
  const base = url.replace(/\/v1$/, '');
  const info = async (): Promise<ServerInfo> => JSON.parse((await send(`${base}/get_server_info`, { headers })).text) as ServerInfo;
  const status = async (): Promise<EngineStatus> => (await info()).status;
  let now = await status();
  while (now.running + now.waiting > 0) {
    await sleep(200);
    now = await status();
  }
  await postJson(`${base}/flush_cache`, {}, headers);
  const processes = [pid, childOf(pid)];
  const resident = processes.map(() => Infinity);
  for (let i = 0; i < 8; i++) {
    if (collects) for (const id of processes) if (id !== undefined) process.kill(id, COLLECT);
    await sleep(500);
    processes.forEach((id, which) => {
      resident[which] = Math.min(resident[which]!, id === undefined ? 0 : residentBytes(id));
    });
  }
  const { status: last, memory_plan: plan } = await info();
  const { gpuBuffers, gpuBytes, kvPagesUsed } = last;
  return { gpuBuffers, gpuBytes, gpuPlanned: plan.totalBytes, kvPagesUsed, serverBytes: resident[0]!, engineBytes: resident[1]! };
}

/** The largest child of a process: the engine (the other children of a server are helpers of its loader). */
export function childOf(pid: number): number | undefined {
  try {
    const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ').filter(Boolean).map(Number);
    return children.sort((a, b) => residentBytes(b) - residentBytes(a))[0];
  } catch {
    return undefined;
  }
}

function residentBytes(pid: number): number {
  try {
    return Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? 0) * 1024;
  } catch {
    return 0;
  }
}

/** Buffers for copies back, of sizes that nothing read before. */
const MORE_BUFFERS = 8;

/**
 * What grew by more than `share` between two looks, e.g. "engineBytes 100 -> 120". Workspaces and pages grow up to the plan, by larger buffers in the place of
 * smaller ones; so a leak shows in the number of buffers, and bytes are held against the plan. A software adapter's are the engine's own.
 */
export function growth(before: Holdings, after: Holdings, share: number): string[] {
  const grown = Math.max(0, after.gpuBytes - before.gpuBytes);
  const most: Readonly<Record<keyof Holdings, number>> = {
    gpuBuffers: before.gpuBuffers + MORE_BUFFERS,
    gpuBytes: Math.max(before.gpuBytes * (1 + share), before.gpuPlanned),
    gpuPlanned: before.gpuPlanned,
    kvPagesUsed: before.kvPagesUsed * (1 + share),
    serverBytes: before.serverBytes * (1 + share),
    engineBytes: before.engineBytes * (1 + share) + grown,
  };
  return (Object.keys(most) as (keyof Holdings)[])
    .filter((name) => after[name] > most[name])
    .map((name) => `${name} ${before[name]} -> ${after[name]}`);
}
