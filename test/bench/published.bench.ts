/**
 * `npm run bench -- published FOLDER`: a checkpoint of a published shape with random weights (test/tools/dump_published.py NAME FOLDER), which it must compute as PyTorch did: logits of a short
 * prompt within 1e-6 of their squares, and greedy tokens; of Whisper logits of a few tokens behind a window of sound; of Kokoro the frames, the stages and the samples of a sentence. Says how long it took to be ready, what the host held above what the device was given,
 * and the processor seconds of a token.
 */
import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { floatStorage } from '../../engine/config.ts';
import { loadWhisperModel } from '../../engine/models/whisper/load.ts';
import { createNodePlatform } from '../../engine/platform/node.ts';
import { openModelFolder } from '../../engine/weights/open-model-folder.ts';
import { openSafetensors } from '../../engine/weights/safetensors.ts';
import { nmse } from '../support/compare.ts';
import { DecoderHarness, argmax } from '../support/decoder-harness.ts';
import { kokoroErrors } from '../support/kokoro-errors.ts';
import { forcedLogits } from '../support/whisper-logits.ts';
import { benchDevice, fixed, loadText, printMachine, printTable } from './harness.ts';

const MIB = 2 ** 20;
const WORST = 1e-6;
/** Greedy tokens are compared as long as the best logit is this far before the second: nearer ones may change places. */
const NEAR = 1e-3;

const [given] = process.argv.slice(2);
if (given === undefined) throw new Error('give a folder that test/tools/dump_published.py wrote');
const folder = resolve(given);
const golden = JSON.parse(readFileSync(join(folder, 'golden.json'), 'utf8')) as {
  readonly name: string;
  readonly prompt: number[];
  readonly greedy: number[];
  readonly parameters: number;
  /** Of each id of a sentence. */
  readonly frames?: number[];
};

/** Processor seconds of this process so far. */
function spent(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1e6;
}

const device = await benchDevice('default');
printMachine(device);
const held = process.memoryUsage().rss;
const [from, cpu] = [performance.now(), spent()];
const checkpoint = await openSafetensors(createNodePlatform(), folder, 'golden.safetensors');
const has = (name: string): boolean => checkpoint.names().includes(name);
const { error, step } = await (has('waveform') ? kokoro() : has('audio') ? whisper() : decoder());
const ready = { seconds: (performance.now() - from) / 1000, processor: spent() - cpu };
const peak = process.resourceUsage().maxRSS * 1024 - held - device.stats.bufferBytes;
await checkpoint.close();
const decoding = spent();
const agreed = await step();
const perToken = golden.greedy.length === 0 ? undefined : (spent() - decoding) / golden.greedy.length;
printTable(
  [
    'shape',
    'parameters',
    'NMSE',
    'greedy tokens',
    'ready',
    'processor until then',
    'on the device',
    'host peak above it',
    'processor a token',
  ],
  [
    [
      golden.name,
      `${fixed(golden.parameters / 1e6, 0)} M`,
      error.toExponential(1),
      `${agreed} of ${golden.greedy.length}`,
      `${fixed(ready.seconds, 1)} s`,
      `${fixed(ready.processor, 1)} s`,
      `${fixed(device.stats.bufferBytes / MIB, 0)} MiB`,
      `${fixed(peak / MIB, 0)} MiB`,
      perToken === undefined ? '-' : `${fixed(perToken, 2)} s`,
    ],
  ],
);
console.log(loadText());
device.close();
if (!(error <= WORST)) throw new Error(`the NMSE is ${error}, expected at most ${WORST}`);
if (device.errors.length > 0) throw new Error(device.errors.join('\n'));

interface Computed {
  /** NMSE of the prompt's logits; the first step compiles. */
  readonly error: number;
  /** Goes on with the greedy tokens; returns how many are the same. */
  step(): Promise<number>;
}

async function decoder(): Promise<Computed> {
  const harness = await DecoderHarness.load(device, folder, { dtype: 'f16', kvType: 'f32', sequences: 1, context: 64, rows: 16 });
  let rows = await harness.step([{ sequence: 0, start: 0, tokens: golden.prompt }]);
  return {
    error: nmse(Float32Array.from(rows.flatMap((row) => [...row])), await checkpoint.read('logits')),
    async step() {
      let agreed = 0;
      for (const [i, token] of golden.greedy.entries()) {
        const last = rows.at(-1)!;
        const best = argmax(last);
        const second = last.reduce((most, value, id) => (id === best ? most : Math.max(most, value)), -Infinity);
        if (best !== token && last[best]! - second > NEAR) throw new Error(`token ${i} is ${best}, expected ${token}`);
        agreed += Number(best === token);
        rows = await harness.step([{ sequence: 0, start: golden.prompt.length + i, tokens: [token] }]);
      }
      return agreed;
    },
  };
}

async function whisper(): Promise<Computed> {
  const model = await loadWhisperModel(device, await openModelFolder(device.platform, folder), floatStorage('f16'));
  const logits = await forcedLogits(device, model, await checkpoint.read('audio'), golden.prompt);
  return { error: nmse(logits, await checkpoint.read('logits')), step: () => Promise.resolve(0) };
}

/** The worst of the stages. Weights are in f32: a folded weight norm is no f16. */
async function kokoro(): Promise<Computed> {
  const errors = await kokoroErrors(device, folder, checkpoint, golden);
  for (const [stage, error] of Object.entries(errors)) console.log(`${stage.padEnd(32)} NMSE ${error.toExponential(1)}`);
  return { error: Math.max(...Object.values(errors)), step: () => Promise.resolve(0) };
}
