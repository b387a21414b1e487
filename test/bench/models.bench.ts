/** The bundled models end to end through the engine, without HTTP: tokens a second, real-time factors, and what a token costs. */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { ChatRequest, EngineStatus } from '../../engine/api.ts';
import type { Engine } from '../../engine/protocol.ts';
import { DEFAULT_ENGINE_CONFIG } from '../../engine/config.ts';
import { createEngine } from '../../engine/index.ts';
import { resample } from '../../engine/audio/resample.ts';
import { parseWav, wavToMono } from '../../engine/audio/wav.ts';
import { createNodePlatform } from '../../engine/platform/node.ts';
import { median } from '../support/chat-speed.ts';
import { fixed, loadText, printTable } from './harness.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const never = (): AbortSignal => new AbortController().signal;
const DECODED = 64;
const RUNS = 5;
const SENTENCE = 'The quick brown fox jumps over the lazy dog.';
const VOICES = ['aus-female-1', 'aus-male-3', 'vulcan'];

/** Seconds until the first and the last event, and how many tokens came. */
async function chatOnce(engine: Engine, index: number): Promise<{ first: number; last: number; tokens: number }> {
  // Different beginnings, so that no run finds another's prefix in the cache.
  const content = `${index}. Tell me a short story about a fox, and then another one about a bear and his friends.`;
  const request: ChatRequest = { messages: [{ role: 'user', content }], sampling: { temperature: 0 }, maxTokens: DECODED, ignoreEos: true };
  const from = performance.now();
  let first = 0;
  let tokens = 0;
  for await (const event of engine.chat(request, never())) {
    if (event.type === 'delta' && first === 0) first = performance.now();
    if (event.type === 'finish') tokens += event.completionTokens;
  }
  return { first: (first - from) / 1000, last: (performance.now() - from) / 1000, tokens };
}

async function chatRow(engine: Engine, clients: number): Promise<string[]> {
  const rates: number[] = [];
  const waits: number[] = [];
  let costs: string[] = [];
  for (let run = 0; run <= RUNS; run++) {
    const before = engine.status();
    const from = performance.now();
    const answers = await Promise.all(Array.from({ length: clients }, (_, i) => chatOnce(engine, run * clients + i)));
    const seconds = (performance.now() - from) / 1000;
    const tokens = answers.reduce((sum, answer) => sum + answer.tokens, 0);
    costs = costPerToken(before, engine.status(), tokens);
    if (run === 0) continue;
    rates.push(tokens / seconds);
    waits.push(median(answers.map((answer) => answer.first)) * 1000);
  }
  return [`chat, ${clients} at once`, fixed(median(rates), 1), fixed(median(waits), 0), ...costs, loadText()];
}

function costPerToken(before: EngineStatus, after: EngineStatus, tokens: number): string[] {
  const each = (key: 'dispatches' | 'submits' | 'bytesRead', digits: number): string => fixed((after[key] - before[key]) / tokens, digits);
  return [each('dispatches', 1), each('submits', 2), each('bytesRead', 1), String(after.gpuBuffers - before.gpuBuffers)];
}

async function speechRow(engine: Engine, voice: string): Promise<string[]> {
  const factors: number[] = [];
  let seconds = 0;
  for (let run = 0; run <= RUNS; run++) {
    const from = performance.now();
    for await (const event of engine.synthesize({ text: SENTENCE, voice, seed: 7 }, never())) {
      if (event.type === 'finish') seconds = event.seconds;
    }
    if (run > 0) factors.push((performance.now() - from) / 1000 / seconds);
  }
  return [`speech, ${voice}`, fixed(seconds), fixed(median(factors), 3), loadText()];
}

async function transcriptionRow(engine: Engine, name: string, path: string): Promise<string[]> {
  const wav = parseWav(readFileSync(path));
  const samples = resample(wavToMono(wav), wav.sampleRate, 16000);
  const seconds = samples.length / 16000;
  const factors: number[] = [];
  let text = '';
  for (let run = 0; run <= 3; run++) {
    const from = performance.now();
    for await (const event of engine.transcribe({ samples, language: 'en' }, never())) if (event.type === 'finish') text = event.text;
    if (run > 0) factors.push((performance.now() - from) / 1000 / seconds);
  }
  return [`transcription, ${name}`, fixed(seconds), fixed(median(factors), 3), loadText(), text.slice(0, 60)];
}

const models = Object.fromEntries(
  (['chat', 'speech', 'transcription'] as const).map((task) => [
    task,
    { path: join(ROOT, 'models', `parley-${task === 'transcription' ? 'transcribe' : task}`) },
  ]),
);
const engine = await createEngine(createNodePlatform(), { ...DEFAULT_ENGINE_CONFIG, ...models });
const { adapter } = engine.info();
console.log(`adapter  ${adapter.name} (${adapter.family})`);
console.log(`date     ${new Date().toISOString().slice(0, 16)}Z; medians of ${RUNS} runs after one; ${DECODED} tokens an answer\n`);

const chat: string[][] = [];
for (const clients of [1, 4, 8, 32]) chat.push(await chatRow(engine, clients));
const perToken = ['dispatches/token', 'submits/token', 'bytes read/token', 'new buffers'];
printTable(['', 'tokens/s', 'first token ms', ...perToken, 'load'], chat);

const speech: string[][] = [];
for (const voice of VOICES) speech.push(await speechRow(engine, voice));
printTable(['', 'audio s', 'real-time factor', 'load'], speech);

const clips = [['fixture clip', join(ROOT, 'test/fixtures/parley-transcribe/clip.wav')], ['LJ001-0002', join(ROOT, '../shared/audio/LJ001-0002.wav')]] as const; // prettier-ignore
const transcription: string[][] = [];
for (const [name, path] of clips) if (existsSync(path)) transcription.push(await transcriptionRow(engine, name, path));
printTable(['', 'audio s', 'real-time factor', 'load', 'text'], transcription);
await engine.close();
process.exit(0);
