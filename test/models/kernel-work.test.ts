/**
 * What kernels read, write and compute is known of each of them, and adds up to what models are known to take. That what is written is right, every kernel case
 * says (test/support/kernel-case.ts).
 */
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import type { Caps, OptionalFeature } from '../../engine/gpu/caps.ts';
import type { Device } from '../../engine/gpu/device.ts';
import type { Recorder } from '../../engine/gpu/recorder.ts';
import { createEncoderWorkspace, encodeAudio } from '../../engine/models/whisper/encoder.ts';
import { loadWhisperModel } from '../../engine/models/whisper/load.ts';
import { conv1d, packConv1d } from '../../engine/ops/conv.ts';
import { denseAttention } from '../../engine/ops/dense-attention.ts';
import { COUNTED, workOf } from '../../engine/ops/kernel-work.ts';
import { linear } from '../../engine/ops/linear.ts';
import { lstm } from '../../engine/ops/lstm.ts';
import { emptyLinear } from '../../engine/ops/pack-linear.ts';
import type { WordPlace } from '../../engine/ops/weight-place.ts';
import { createNodePlatform } from '../../engine/platform/node.ts';
import { firstChunk } from '../../engine/scheduler/prefill-pace.ts';
import { product } from '../../engine/util/math.ts';
import { openModelFolder } from '../../engine/weights/open-model-folder.ts';
import { RANDOM_SHAPES, randomPath } from '../../engine/weights/random/random-folder.ts';
import { DecoderHarness } from '../support/decoder-harness.ts';
import { testDevice } from '../support/device.ts';
import { isKernel } from '../support/kernel-declaration.ts';
import { countWork } from '../support/kernel-work.ts';
import type { KernelWork } from '../support/kernel-work.ts';
import { planOnly } from '../support/planned-device.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const KEEP = { float: 'f16', keepBlocks: true, quantization: 'none' } as const;

let device: Device;
beforeAll(async () => {
  device = await testDevice();
});
afterAll(() => {
  expect(device.errors).toEqual([]);
  device.close();
});

test('every kernel is counted, and nothing else', async () => {
  const kernels: string[] = [];
  for (const file of readdirSync(join(ROOT, 'engine', 'ops'))) {
    const module = (await import(join(ROOT, 'engine', 'ops', file))) as Record<string, unknown>;
    kernels.push(...Object.values(module).filter(isKernel).map(({ name }) => name)); // prettier-ignore
  }
  expect([...COUNTED].toSorted()).toEqual(kernels.toSorted());
});

/** What `record` dispatches, without doing it. */
function counted(
  record: (rec: Recorder) => void,
  positions = 1,
): { readonly all: KernelWork; readonly by: ReadonlyMap<string, Readonly<KernelWork>> } {
  const work = countWork(device, () => positions, { run: false });
  try {
    record(device.record('counted'));
  } finally {
    work.stop();
  }
  const all = { calls: 0, read: 0, written: 0, operations: 0 };
  for (const one of work.kernels.values()) for (const key of Object.keys(all) as (keyof KernelWork)[]) all[key] += one[key];
  return { all, by: work.kernels };
}

/** The loops of the definition, with nothing in them but a count. */
function loops(...bounds: readonly number[]): number {
  const [first = 1, ...rest] = bounds;
  if (bounds.length === 0) return 1;
  let sum = 0;
  for (let i = 0; i < first; i++) sum += loops(...rest);
  return sum;
}

const tensor = (...shape: readonly number[]) => device.tensor('t', 'f32', shape);

const KINDS: readonly (readonly [string, readonly OptionalFeature[]])[] = [
  ['the adapter as it is', []],
  ['an adapter without subgroups', ['subgroups']],
  ['a GPU', ['software']],
];

describe.each(KINDS)('on %s', (_, disable) => {
  test.each([1, 2, 5, 33])('a product of %i rows', (rows) => {
    device.pretend(disable);
    const [n, k] = [40, 24];
    const weight = emptyLinear(device, 'w', n, k, 'f16');
    const { all } = counted((rec) => linear(rec, { x: tensor(rows + 3, k), weight, out: tensor(rows + 3, n), bias: tensor(n), rows }));
    expect(all.operations).toBe(2 * loops(rows, n, k) + rows * n);
    expect(all.written).toBe(4 * rows * n);
    // At most once more for each tile of rows.
    expect(all.read).toBeGreaterThanOrEqual(4 * rows * k + 4 * n + 2 * n * k);
    expect(all.read).toBeLessThanOrEqual(4 * rows * k + 4 * n + 2 * n * k * rows);
  });

  test('a convolution', () => {
    device.pretend(disable);
    const [rows, channels, columns, taps] = [40, 8, 16, 3];
    const shape = { outChannels: columns, inChannels: channels, kernel: taps };
    const weight = packConv1d(device, 'c', new Float32Array(columns * channels * taps), shape, new Float32Array(columns), 'f16');
    const { all } = counted((rec) => void conv1d(rec, { x: tensor(rows, channels), weight, out: tensor(rows, columns), padding: 1, rows }));
    expect(all.operations).toBe(2 * loops(rows, columns, taps, channels) + rows * columns);
    expect(all).toMatchObject({ read: 4 * rows * channels + 2 * columns * channels * taps + 4 * columns, written: 4 * rows * columns });
  });

  test('attention of all rows to all', () => {
    device.pretend(disable);
    const [queries, keys, heads, d] = [9, 20, 2, 64];
    const of = (rows: number) => ({ tensor: tensor(rows, heads * d) });
    const { all } = counted((rec) =>
      denseAttention(rec, {
        q: of(queries),
        k: of(keys),
        v: of(keys),
        out: tensor(queries, heads * d),
        heads,
        headDim: d,
        over: { queries, keys },
      }),
    );
    // A product for each score, and one for each value that goes into a sum.
    expect(all.operations).toBe(2 * loops(heads, queries, keys, d) * 2 + queries * heads * d);
    expect(all).toMatchObject({ read: 4 * heads * d * (queries + 2 * keys), written: 4 * queries * heads * d });
  });

  test.each([1, 4, 40])('a step of %i rows of a decoder', async (rows) => {
    device.pretend(disable);
    const [hidden, intermediate, layers, heads, kvHeads, d, vocabulary, positions] = [256, 512, 2, 4, 2, 64, 1024, 160];
    const path = randomPath({ shape: 'llama-tiny', type: 'f16', seed: 1 });
    const harness = await DecoderHarness.load(device, path, { storage: KEEP, dtype: 'f16', context: 256, rows, sequences: 1 });
    const work = countWork(device, () => positions, { run: false });
    onTestFinished(() => work.stop());
    await harness.step([{ sequence: 0, start: positions - rows, tokens: Array<number>(rows).fill(3) }]);
    const operations = [...work.kernels.values()].reduce((sum, one) => sum + one.operations, 0);
    const products = layers * (hidden * d * (2 * heads + 2 * kvHeads) + 3 * hidden * intermediate) + vocabulary * hidden;
    const least = 2 * rows * products + layers * 4 * rows * heads * d * positions;
    expect(operations).toBeGreaterThanOrEqual(least);
    // The rest is norms, gates, rotations and additions; tiles of a prompt are filled up.
    expect(operations).toBeLessThan(1.1 * least);
  });
});

test('an LSTM', () => {
  device.pretend([]);
  const [hidden, steps] = [16, 12];
  const weightIn = (place: WordPlace) => ({
    hidden,
    input: emptyLinear(device, 'i', 8 * hidden, 8, 'f32'),
    bias: tensor(8 * hidden),
    recurrent: emptyLinear(device, 'r', 8 * hidden, hidden, 'f32', place).parts[0]!,
  });
  const args = { x: tensor(2 * steps, 8), out: tensor(2 * steps, 2 * hidden), inputs: tensor(2 * steps, 8 * hidden) };
  const [inBuffer, inTexture] = (['buffer', 'texture'] as const).map((place) => counted((rec) => lstm(rec, { ...args, weight: weightIn(place), rows: steps })).by); // prettier-ignore
  expect(inBuffer!.get('lstm')!.operations).toBe(2 * loops(2, steps, 4 * hidden, hidden) + steps * 2 * hidden);
  expect(inTexture!.get('lstm_texels')!.operations).toBe(inBuffer!.get('lstm')!.operations);
});

test("Whisper's encoder takes what its sizes say", async () => {
  device.pretend([]);
  const model = await loadWhisperModel(
    device,
    await openModelFolder(createNodePlatform(), join(ROOT, 'models', 'parley-transcribe')),
    KEEP,
  );
  const { config, weights, logMel } = model;
  const workspace = createEncoderWorkspace(device, config);
  const { by, all } = counted((rec) => void encodeAudio(rec, { config, weights, logMel, workspace, frames: config.frames }));
  const { channels: c, encoder, mel } = config;
  const positions = config.frames / 2;
  const sum = (prefix: string): number =>
    [...by].reduce((total, [name, work]) => total + (name.startsWith(prefix) ? work.operations : 0), 0);
  const outputs = encoder.layers * positions * (5 * c + encoder.ffn);
  const products = 2 * encoder.layers * positions * (4 * c * c + 2 * c * encoder.ffn);
  // The transform of samples into a spectrum is a product or convolutions beside these.
  expect(sum('linear') - products - outputs).toBeGreaterThanOrEqual(0);
  expect(sum('dense')).toBe(encoder.layers * (4 * positions * positions * c + positions * c));
  const stem = 2 * config.frames * 3 * mel.mels * c + 2 * positions * 3 * c * c;
  expect(sum('linear') + sum('conv1d')).toBeGreaterThan(products + stem);
  expect(all.operations).toBeLessThan(1.35 * (products + stem + sum('dense')));
});

/** Adapters that bind a matrix of these models whole. */
const GPU: Partial<Caps> = {
  subgroups: true, subgroupMinSize: 32, subgroupMaxSize: 32, software: false, family: 'generic', maxBindingBytes: 2 ** 31, maxTexels: 2 ** 27,
  maxBufferBytes: 2 ** 32, maxWorkgroupBytes: 32768, maxStorageBuffers: 10,
}; // prettier-ignore

interface PromptStep {
  /** Operations of the longest dispatch, and of all layers. */
  readonly longest: number;
  readonly all: number;
}

/** A step of a prompt of a published shape on a GPU, of which nothing is made: of the layers, as the head is for one row. */
async function promptStep(shape: string, rows: number, positions: number): Promise<PromptStep> {
  const planned = planOnly(await testDevice(), GPU, []);
  const [layers, { num_hidden_layers: whole, vocab_size: vocabulary }] = [2, RANDOM_SHAPES[shape]!];
  const path = randomPath({ shape, type: 'q4_k', layers, seed: 1 });
  const harness = await DecoderHarness.load(planned, path, { storage: KEEP, dtype: 'f16', context: positions, rows, sequences: 1 });
  const found: number[] = [];
  const { record } = planned;
  planned.record = (label) => {
    const rec = record.call(planned, label);
    rec.dispatch = (kernel, variant, bindings, params, workgroups) => {
      const { operations, operationsAPosition } = workOf(kernel, variant, bindings, params, workgroups);
      if ((params as Record<string, number>)['n'] !== vocabulary) found.push(operations + operationsAPosition * positions);
    };
    return rec;
  };
  await harness.step([{ sequence: 0, start: positions - rows, tokens: Array<number>(rows).fill(3) }]);
  return { longest: Math.max(...found), all: (found.reduce((a, b) => a + b, 0) * whole) / layers };
}

async function parametersOf(shape: string): Promise<number> {
  const folder = await openModelFolder(createNodePlatform(), randomPath({ shape, type: 'q4_k', seed: 1 }));
  const checkpoint = await folder.weights();
  return checkpoint.names().reduce((sum, name) => sum + product(checkpoint.tensor(name)!.shape), 0);
}

describe.each(['llama-0.5b', 'llama-1b', 'llama-8b'])('a prompt of %s', (shape) => {
  test('has no dispatch of 50 ms in its first step, on a card of 0.32 TFLOP/s', async () => {
    const { longest } = await promptStep(shape, firstChunk(await parametersOf(shape), 256), 512);
    expect(longest).toBeGreaterThan(1e9);
    expect(longest).toBeLessThan(0.05 * 0.32e12);
  });

  test.each([512, 32_768])('nor in those that take 200 ms, at %i positions', async (positions) => {
    const { longest, all } = await promptStep(shape, 256, positions);
    expect(longest / all).toBeGreaterThan(0.005);
    expect(longest / all).toBeLessThan(50 / 200);
  });
});
