/**
 * `npm run bench -- probes [TOKENS] [UPLOADS]` (default 32,000 and 20): how long /health and /metrics take, asked by a process of its own, of a
 * server that is idle, and of one whose engine computes a prompt of so many tokens while so many uploads of 20 MiB are received and decoded. Fails
 * when the 99th percentile beside the work is above 5 ms. Only by name.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { copyFileSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { setTimeout as sleep } from 'node:timers/promises';
import { wavHeader } from '../../engine/audio/wav.ts';
import { TSX_ARGV } from '../../server/tsx.ts';
import { formBody, postJson, send } from '../support/listeners.ts';
import { writeRandomCheckpoint } from '../support/random-checkpoint.ts';
import { spawnAt, whenReady } from '../support/server-process.ts';
import { loadText, printTable } from './harness.ts';
import { percentile } from './serving/load.ts';

const SERVER = new URL('../../server/main.ts', import.meta.url);
const POLLER = fileURLToPath(new URL('./serving/poller.ts', import.meta.url));
const LIMIT_MS = 5;
const IDLE_MS = 5_000;
const UPLOAD_BYTES = 20 << 20;
const [tokens = 32_000, uploads = 20] = process.argv.slice(2).map(Number);

/** The bundled model's tokenizer and shape, with room for the prompt: it is made for 2,048 tokens. */
const folder = mkdtempSync(join(tmpdir(), 'parley-probes-'));
const bundled = fileURLToPath(new URL('../../models/parley-chat/', import.meta.url));
const { vocab_size: vocabulary } = JSON.parse(readFileSync(join(bundled, 'config.json'), 'utf8')) as { readonly vocab_size: number };
writeRandomCheckpoint(folder, {
  hidden: 256,
  intermediate: 704,
  layers: 4,
  heads: 4,
  kvHeads: 2,
  headDim: 64,
  vocabulary,
  maxPositions: 32_768,
});
for (const name of ['tokenizer.json', 'tokenizer_config.json']) copyFileSync(join(bundled, name), join(folder, name));

const flags = [`--chat-model=${folder}`, '--served-model-name=parley-chat', '--speech-model=none', '--disable-radix-cache'];
const server = await whenReady(spawnAt(SERVER, flags));
const [chat, transcription] = ['chat', 'transcription'].map((task) => server.urls[task]!.replace(/\/v1$/, '')) as [string, string];
const paths = [chat, transcription].flatMap((base) => ['/health', '/metrics'].map((path) => base + path));

/** How long answers took while `work` went on, by address. */
async function beside(work: () => Promise<unknown>): Promise<Readonly<Record<string, readonly number[]>>> {
  const poller = spawn(process.execPath, [...TSX_ARGV, POLLER, ...paths], { stdio: ['ignore', 'pipe', 'inherit'] });
  const chunks: Buffer[] = [];
  const begun = new Promise<void>((resolve) => poller.stdout.once('data', () => resolve()));
  poller.stdout.on('data', (chunk: Buffer) => chunks.push(chunk));
  await begun;
  await work().finally(() => poller.kill('SIGTERM'));
  await once(poller, 'close');
  return JSON.parse(
    Buffer.concat(chunks)
      .toString()
      .replace(/^begins\n/, ''),
  ) as Record<string, number[]>;
}

async function longPrompt(): Promise<string> {
  const line = 'The keeper of the light wrote down what the sea had brought that day. ';
  const { count } = JSON.parse((await postJson(`${chat}/tokenize`, { prompt: line.repeat(100), add_special_tokens: false })).text) as {
    readonly count: number;
  };
  return line.repeat(Math.floor((tokens / count) * 100));
}

/** 44.1 kHz in two channels, which is resampled and mixed. */
function recording(): Buffer {
  const samples = Buffer.alloc(UPLOAD_BYTES);
  for (let at = 0; at < samples.length; at += 2) samples.writeInt16LE(Math.round(8000 * Math.sin(at / 97)), at);
  const header = Buffer.from(wavHeader(44_100, samples.length));
  header.writeUInt16LE(2, 22);
  header.writeUInt32LE(44_100 * 4, 28);
  header.writeUInt16LE(4, 32);
  return Buffer.concat([header, samples]);
}

// Whatever fails below, no process stays.
process.on('exit', () => {
  server.child.kill('SIGKILL');
  rmSync(folder, { recursive: true });
});
const prompt = await longPrompt();
const form = formBody([['model', 'whisper-1'], ['response_format', 'json'], ['file', recording()]]); // prettier-ignore
const idle = await beside(() => sleep(IDLE_MS));
let computed = 0;
const busy = await beside(async () => {
  const from = performance.now();
  const answer = postJson(`${chat}/v1/completions`, { model: 'parley-chat', prompt, max_tokens: 1 });
  void Array.from({ length: uploads }, () =>
    // What is heard in them is not asked here: the server has gone by then.
    send(`${transcription}/v1/audio/transcriptions`, { body: form, headers: { 'content-type': 'multipart/form-data; boundary=XX' } }).catch(
      () => undefined,
    ),
  );
  const { status, json } = await answer;
  if (status !== 200) throw new Error(`the prompt was answered with ${status}: ${json.error.message}`);
  computed = Number(json.usage['prompt_tokens']);
  console.log(`${computed} tokens in ${((performance.now() - from) / 1000).toFixed(1)} s beside ${uploads} uploads`);
});
const exit = server.exit;
server.child.kill('SIGKILL');
await exit;

console.log(`date ${new Date().toISOString().slice(0, 16)}Z, load ${loadText()}`);
const row = (name: string, times: readonly number[]): [string, string[]] => [
  name,
  [String(times.length), ...[0.5, 0.99, 1].map((share) => percentile(times, share).toFixed(1))],
];
const rows = paths.flatMap((path) => [row(`${path} idle`, idle[path]!), row(`${path} busy`, busy[path]!)]);
printTable(['ms', 'asked', 'median', '99 %', 'most'], rows.map(([name, cells]) => [name, ...cells])); // prettier-ignore
const slow = paths.filter((path) => percentile(busy[path]!, 0.99) > LIMIT_MS);
for (const path of slow) console.log(`FAILS  ${path}: above ${LIMIT_MS} ms at the 99th percentile`);
if (slow.length === 0) console.log(`holds  within ${LIMIT_MS} ms at the 99th percentile`);
process.exit(slow.length > 0 ? 1 : 0);
