/**
 * GGUF files with their matrices in the blocks of the file beside the same in f16: bytes on the device, perplexity over this repository's documents, 64
 * greedy tokens, and what a token costs. `npm run bench -- quantised FILE [TOKENS]`; only by name, because it takes minutes. Fails when the perplexities are
 * further apart than values that are the file's to the bit should ever be.
 */
import { readFileSync, readdirSync, statSync } from 'node:fs';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { floatStorage } from '../../engine/config.ts';
import type { WeightStorage } from '../../engine/config.ts';
import type { Device } from '../../engine/gpu/device.ts';
import { createNodePlatform } from '../../engine/platform/node.ts';
import { Tokenizer } from '../../engine/text/tokenizer.ts';
import { openModelFolder } from '../../engine/weights/open-model-folder.ts';
import { DecoderHarness, argmax } from '../support/decoder-harness.ts';
import { benchDevice, fixed, loadText, printMachine, printTable } from './harness.ts';

/** Positions of a text; each begins anew. */
const WINDOW = 512;
/** Rows a step. */
const CHUNK = 64;
const GREEDY = 64;
const PROMPT = 'The capital of France is';
/** Perplexity of the packed weights over that of the unpacked ones, less 1. */
const MOST_APART = 0.002;

/** Negative log probability of a token, and by how much the best is ahead of the next. */
function loss(logits: Float32Array, token: number): number {
  const top = logits.reduce((a, b) => Math.max(a, b), -Infinity);
  return Math.log(logits.reduce((sum, logit) => sum + Math.exp(logit - top), 0)) + top - logits[token]!;
}

async function perplexity(harness: DecoderHarness, tokens: readonly number[]): Promise<number> {
  let sum = 0;
  let count = 0;
  for (let from = 0; from < tokens.length - 1; from += WINDOW) {
    const window = tokens.slice(from, from + WINDOW);
    for (let start = 0; start < window.length; start += CHUNK) {
      const rows = await harness.step([{ sequence: 0, start, tokens: window.slice(start, start + CHUNK) }]);
      for (const [i, row] of rows.entries()) {
        const next = window[start + i + 1];
        if (next === undefined) continue;
        sum += loss(row, next);
        count++;
      }
    }
  }
  return Math.exp(sum / count);
}

interface Answer {
  readonly ids: readonly number[];
  /** Log probability of each token less that of the one after it. */
  readonly gaps: readonly number[];
  readonly seconds: number;
  readonly cpuSeconds: number;
}

async function greedy(harness: DecoderHarness, prompt: readonly number[]): Promise<Answer> {
  let row = (await harness.step([{ sequence: 0, start: 0, tokens: prompt }])).at(-1)!;
  const [ids, gaps]: [number[], number[]] = [[], []];
  const from = performance.now();
  const cpu = process.cpuUsage();
  while (ids.length < GREEDY) {
    const best = argmax(row);
    ids.push(best);
    gaps.push(row[best]! - row.reduce((most, logit, i) => (i === best ? most : Math.max(most, logit)), -Infinity));
    row = (await harness.step([{ sequence: 0, start: prompt.length + ids.length - 1, tokens: [best] }]))[0]!;
  }
  const { user, system } = process.cpuUsage(cpu);
  return { ids, gaps, seconds: (performance.now() - from) / 1000, cpuSeconds: (user + system) / 1e6 };
}

/** English prose that nobody trained on. */
function prose(): string {
  const folder = fileURLToPath(new URL('../../docs/', import.meta.url));
  const files = readdirSync(folder).filter((file) => file.endsWith('.md') && file !== 'flags.md');
  return files.sort().map((file) => readFileSync(join(folder, file), 'utf8')).join('\n'); // prettier-ignore
}

async function measure(device: Device, path: string, storage: WeightStorage, tokens: readonly number[], prompt: readonly number[]) {
  const from = performance.now();
  const harness = await DecoderHarness.load(device, path, { storage, dtype: 'f16', context: WINDOW, sequences: 1, rows: CHUNK });
  const seconds = (performance.now() - from) / 1000;
  return {
    weightBytes: harness.weightBytes,
    load: seconds,
    perplexity: await perplexity(harness, tokens),
    answer: await greedy(harness, prompt),
  };
}

const [path, count = '4000'] = process.argv.slice(2);
if (path === undefined) {
  console.error('npm run bench -- quantised FILE.gguf [TOKENS]');
  process.exit(2);
}
const tokenizer = await Tokenizer.load(await openModelFolder(createNodePlatform(), path));
const tokens = tokenizer.encode(prose(), { addSpecialTokens: false }).slice(0, Number(count));
const prompt = tokenizer.encode(PROMPT, { addSpecialTokens: true });
const results = [];
for (const [name, storage] of [
  ['as in the file', { float: 'f16', keepBlocks: true, quantization: 'none' }],
  ['f16', floatStorage('f16')],
] as const) {
  // A device each, so that one's buffers are gone before the other's are made.
  const device = await benchDevice('default');
  if (results.length === 0) printMachine(device);
  results.push({ name, ...(await measure(device, path, storage, tokens, prompt)) });
  device.close();
}
const [packed, unpacked] = results as [(typeof results)[0], (typeof results)[0]];
console.log(`${basename(path)}: ${fixed(statSync(path).size / 2 ** 20, 1)} MiB; perplexity over ${tokens.length} tokens\n`);
printTable(
  ['matrices', 'MiB on the device', 's to load', 'perplexity', 'ms a token', 'CPU ms a token', 'load'],
  results.map(({ name, weightBytes, load, perplexity, answer }) => [
    name, fixed(weightBytes / 2 ** 20, 1), fixed(load, 1), fixed(perplexity, 4), fixed((answer.seconds / GREEDY) * 1000, 1),
    fixed((answer.cpuSeconds / GREEDY) * 1000, 1), loadText(),
  ]), // prettier-ignore
);
const parted = packed.answer.ids.findIndex((id, i) => id !== unpacked.answer.ids[i]);
const apart = packed.perplexity / unpacked.perplexity - 1;
console.log(
  `perplexity of the packed weights is ${fixed(1 + apart, 6)} times that of the unpacked ones (at most ${MOST_APART * 100} % apart)`,
);
console.log(parted < 0 ? `${GREEDY} greedy tokens are the same` : `greedy tokens part at ${parted}, where the best is ahead by ${fixed(packed.answer.gaps[parted]!, 4)}`); // prettier-ignore
process.exit(Math.abs(apart) <= MOST_APART ? 0 : 1);
