/**
 * `npm run bench -- audio-soak [requests]` (default 2,000): speech and transcription through HTTP against a server of its own, a quarter broken or cut off by
 * the client. Fails on a wrong answer, and when GPU buffers, memory (the least of three looks), threads, open files or temporary files are more than after the first
 * fifth. Linux, and only by name.
 */
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { Agent, request as httpRequest } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { spawnAt, whenReady } from '../support/server-process.ts';
import { loadText, printTable } from './harness.ts';
import { audioAsks } from './serving/audio-asks.ts';
import type { AudioAsk } from './serving/audio-asks.ts';
import { childOf, growth, holdings } from './serving/soak.ts';
import type { Holdings } from './serving/soak.ts';

const SERVER = new URL('./serving/soak-server.ts', import.meta.url);
const CLIENTS = 8;
const MIB = 2 ** 20;
/** Worker threads come and go with decoders; so many more than before are no leak. */
const MORE_THREADS = 4;
const MORE_FILES = 8;
/** When it looks again, as shares of all requests. */
const LATER = [0.6, 0.8, 1];
const requests = Number(process.argv[2] ?? 2000);
/** Every kind has come by then, and every buffer has its size. */
const warm = Math.ceil(requests / 5);

const temporary = mkdtempSync(join(tmpdir(), 'parley-audio-soak-'));
/** The cache of the compiler that runs the sources. */
const COMPILED = /^tsx-/;
const temporaryNames = (): string[] => readdirSync(temporary).filter((name) => !COMPILED.test(name));
const server = await whenReady(spawnAt(SERVER, ['--chat-model=none'], { TMPDIR: temporary }));
process.on('exit', () => server.child.kill('SIGKILL'));
const { speech, transcription } = server.urls;
if (speech === undefined || transcription === undefined) throw new Error(`the server did not start:\n${server.lines.join('\n')}`);
const urls = { speech, transcription };
console.log(`date ${new Date().toISOString().slice(0, 16)}Z, load ${loadText()}: ${requests} requests`);

/** What the processes hold besides memory. */
interface Kept extends Holdings {
  readonly threads: number;
  readonly openFiles: number;
  readonly temporaryFiles: number;
}

async function look(): Promise<Kept> {
  const held = await holdings(speech!, server.child.pid!, true);
  const processes = [server.child.pid!, childOf(server.child.pid!)!];
  const count = (of: string): number => processes.reduce((sum, pid) => sum + readdirSync(`/proc/${pid}/${of}`).length, 0);
  const temporaryFiles = temporaryNames().flatMap((name) => {
    const entries = readdirSync(join(temporary, name), { recursive: true, withFileTypes: true });
    return entries.filter((entry) => entry.isFile());
  }).length;
  return { ...held, threads: count('task'), openFiles: count('fd'), temporaryFiles };
}

const agent = new Agent({ keepAlive: true, maxSockets: CLIENTS });

/** What was wrong with the answer. */
function ask({ listener, path, headers, body, expect, leaves }: AudioAsk): Promise<string | undefined> {
  return new Promise((resolve) => {
    let left = false;
    const sent = leaves === 'sending' ? body.subarray(0, body.length >> 1) : body;
    const options = { method: 'POST', agent, headers: { ...headers, 'content-length': body.length } };
    const request = httpRequest(`${urls[listener]}${path}`, options, (response) => {
      const chunks: Buffer[] = [];
      if (leaves === 'receiving') return leave();
      response.on('data', (chunk: Buffer) => chunks.push(chunk));
      response.on('error', (error) => left || resolve(error.message));
      response.on('end', () => left || resolve(problemOf({ listener, expect }, response.statusCode ?? 0, Buffer.concat(chunks))));
    });
    const leave = (): void => {
      left = true;
      request.destroy();
      resolve(undefined);
    };
    request.on('error', (error) => left || resolve(error.message));
    if (leaves === 'sending') request.write(sent, () => leave());
    else request.end(sent, () => leaves === 'waiting' && setTimeout(leave, 20));
  });
}

function problemOf({ listener, expect }: Pick<AudioAsk, 'listener' | 'expect'>, status: number, bytes: Buffer): string | undefined {
  const text = bytes.toString('latin1');
  const refused = (status === 400 || status === 413) && text.includes('"error"');
  // Subtitles of a clip in which nobody speaks are an empty file; some clips have a tenth of a second.
  const good = status === 200 && (bytes.length > 0 || listener === 'transcription') && !text.includes('{"error"');
  return (good && expect !== 'refused') || (refused && expect !== 'good')
    ? undefined
    : `expected ${expect}, got ${status} ${text.slice(0, 160)}`;
}

const next = audioAsks();
const counts = new Map<string, number>();
const problems: string[] = [];
let at = 0;
async function client(until: number): Promise<void> {
  while (at < until) {
    const index = at++;
    const asked = next(index);
    const problem = await ask(asked);
    counts.set(asked.kind, (counts.get(asked.kind) ?? 0) + 1);
    if (problem !== undefined) problems.push(`request ${index}, ${asked.kind} ${asked.listener}: ${problem}`);
    if (index % 200 === 199) console.log(`${index + 1} sent, load ${loadText()}`);
  }
}
async function run(until: number): Promise<Kept> {
  await Promise.all(Array.from({ length: CLIENTS }, () => client(until)));
  return look();
}

const from = performance.now();
const before = await run(warm);
const looks: Kept[] = [];
for (const part of LATER) looks.push(await run(Math.ceil(requests * part)));
/** The garbage of worker threads and what the allocator keeps come and go by tens of MiB; a leak is in every later look. */
const least = (of: (kept: Kept) => number): number => Math.min(...looks.map(of));
const after: Kept = { ...looks.at(-1)!, serverBytes: least((kept) => kept.serverBytes), engineBytes: least((kept) => kept.engineBytes) };
const seconds = (performance.now() - from) / 1000;
agent.destroy();
server.child.kill('SIGTERM');

const row = (name: string, key: keyof Kept, unit = 1, digits = 0): string[] => [name, (before[key] / unit).toFixed(digits), (after[key] / unit).toFixed(digits)]; // prettier-ignore
printTable(
  ['idle', `after ${warm}`, `after ${requests}`],
  [
    row('GPU buffers', 'gpuBuffers'),
    row('GPU MiB', 'gpuBytes', MIB, 1),
    row('server MiB resident', 'serverBytes', MIB, 1),
    row('engine MiB resident', 'engineBytes', MIB, 1),
    row('threads', 'threads'),
    row('open files', 'openFiles'),
    row('temporary files', 'temporaryFiles'),
  ],
);
console.log(`server MiB at each later look: ${looks.map((kept) => (kept.serverBytes / MIB).toFixed(1)).join(', ')}`);
console.log(`${seconds.toFixed(0)} s; ${[...counts].map(([name, count]) => `${name} ${count}`).join(', ')}`);
const grown = growth(before, after, 0.1);
if (after.threads > before.threads + MORE_THREADS) grown.push(`threads ${before.threads} -> ${after.threads}`);
if (after.openFiles > before.openFiles + MORE_FILES) grown.push(`open files ${before.openFiles} -> ${after.openFiles}`);
if (after.temporaryFiles > 0) grown.push(`temporary files: ${after.temporaryFiles}`);
await server.exit;
const left = temporaryNames();
if (left.length > 0) grown.push(`left behind by the server: ${left.join(', ')}`);
rmSync(temporary, { recursive: true });
for (const problem of [...problems.slice(0, 20), ...grown]) console.log(`FAILS  ${problem}`);
if (problems.length + grown.length === 0) console.log('holds  nothing is left');
process.exit(problems.length + grown.length > 0 ? 1 : 0);
