/** A model of random weights: on the device lies what the host would have made, and what it computes stays of a size. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Device } from '../../engine/gpu/device.ts';
import { WeightLoader } from '../../engine/models/weight-loader.ts';
import { packLinear } from '../../engine/ops/pack-linear.ts';
import type { LinearPart } from '../../engine/ops/weight.ts';
import { createNodePlatform } from '../../engine/platform/node.ts';
import { openModelFolder } from '../../engine/weights/open-model-folder.ts';
import { RANDOM_TYPES, RandomCheckpoint } from '../../engine/weights/random/random-checkpoint.ts';
import { RANDOM_SHAPES, randomPath } from '../../engine/weights/random/random-folder.ts';
import { BLOCK_FORMATS } from '../../engine/weights/block-types.ts';
import { blocksOf } from '../../engine/weights/random/random-values.ts';
import { DecoderHarness } from '../support/decoder-harness.ts';
import { testDevice } from '../support/device.ts';
import { packStored } from '../support/pack-stored.ts';
import { wordsOf } from '../support/words-of.ts';

const KEEP = { float: 'f16', keepBlocks: true, quantization: 'none' } as const;

let device: Device;
beforeAll(async () => {
  device = await testDevice();
});
afterAll(() => {
  expect(device.errors).toEqual([]);
  device.close();
});

/** The narrow matrix has rows that blocks of 256 would cut, in blocks of 32 instead. */
const SHAPES = { wide: [40, 512], narrow: [40, 96] } as const;

/** Loads rows [from, to) of a matrix and compares them with the host's. */
async function compare(checkpoint: RandomCheckpoint, name: string, from: number): Promise<void> {
  const [to = 0, width = 0] = checkpoint.tensor(name)!.shape;
  const loader = new WeightLoader(device, checkpoint, KEEP);
  const { parts } = await loader.linear(name, to, width, { rows: { from, to } });
  const [part] = parts as [LinearPart];
  const random = checkpoint.random(name)!;
  const expected = async () => {
    const rows = to - from;
    if (!('type' in random))
      return packLinear(
        device,
        'expected',
        await checkpoint.read(name, { from: from * width, to: to * width }),
        rows,
        width,
        'f16',
        part.place,
      );
    const inRow = width / BLOCK_FORMATS[random.type].values;
    return packStored(device, 'expected', blocksOf(random, { from: from * inRow, to: to * inRow }), rows, width, random.type, part.place);
  };
  const [expectedPart] = (await expected()).parts as [LinearPart];
  // Two million words are too many for toEqual.
  expect(Buffer.compare(await bytesOf(part), await bytesOf(expectedPart))).toBe(0);
  device.destroy(part.weight, expectedPart.weight);
}

async function bytesOf({ weight }: LinearPart): Promise<Uint8Array> {
  const words = await wordsOf(device, weight);
  return new Uint8Array(words.buffer, words.byteOffset, words.byteLength);
}

test.each([...RANDOM_TYPES.values()])('matrices of %s are on the device as from the host', async (type) => {
  const checkpoint = new RandomCheckpoint(SHAPES, type, 7);
  for (const name of ['wide', 'narrow']) for (const from of [0, 13]) await compare(checkpoint, name, from);
});

test('a matrix of more than a chunk is one', async () => {
  await compare(new RandomCheckpoint({ long: [4099, 1024] }, 'F16', 7), 'long', 0);
});

test('seeds and names make other weights, and a slice is the same as in the whole', async () => {
  const of = (seed: number, name: string) => new RandomCheckpoint({ a: [8, 64], b: [8, 64] }, 'F16', seed).read(name);
  expect(await of(1, 'a')).toEqual(await of(1, 'a'));
  expect(await of(2, 'a')).not.toEqual(await of(1, 'a'));
  expect(await of(1, 'b')).not.toEqual(await of(1, 'a'));
  const blocks = new RandomCheckpoint({ a: [8, 64] }, 'Q5_1', 1);
  expect(await blocks.read('a', { from: 70, to: 130 })).toEqual((await blocks.read('a')).slice(70, 130));
});

test.each([...RANDOM_TYPES.keys()])('a model of %s computes numbers of a size', async (type) => {
  const path = randomPath({ shape: 'llama-tiny', type, seed: 3 });
  const harness = await DecoderHarness.load(device, path, { storage: KEEP, dtype: 'f16', rows: 4, sequences: 1 });
  const tokens = [1, 17, 256, 1023];
  const largest: number[] = [];
  const logits = await harness.step([{ sequence: 0, start: 0, tokens }], (_, values) => void largest.push(rms(values)));
  // Two layers, each of which adds to its input something of about the size that a norm gives.
  expect(largest.length).toBeGreaterThan(2);
  for (const size of [...largest, ...logits.map(rms)]) {
    expect(size).toBeGreaterThan(0.01);
    expect(size).toBeLessThan(10);
  }
});

function rms(values: Float32Array): number {
  return Math.sqrt(values.reduce((sum, value) => sum + value * value, 0) / values.length);
}

test('shapes have as many parameters as their names say', async () => {
  const counts = await Promise.all(
    Object.keys(RANDOM_SHAPES).map(async (shape) => {
      const folder = await openModelFolder(createNodePlatform(), randomPath({ shape, type: 'q4_k', seed: 1 }));
      const checkpoint = await folder.weights();
      const sizes = checkpoint.names().map((name) => checkpoint.tensor(name)!.shape.reduce((a, b) => a * b, 1));
      return [folder.id, sizes.reduce((a, b) => a + b, 0)] as const;
    }),
  );
  // Llama 3.2 1B and 3.1 8B as their cards count them; Qwen2.5 0.5B has 27,648 biases more.
  expect(counts).toEqual([
    ['llama-tiny-q4_k-seed1', 1_705_216],
    ['llama-0.5b-q4_k-seed1', 494_005_120],
    ['llama-1b-q4_k-seed1', 1_235_814_400],
    ['llama-8b-q4_k-seed1', 8_030_261_248],
  ]);
});

test('a cut model has so many layers, and what does not exist is refused by name', async () => {
  const open = (path: string) => openModelFolder(createNodePlatform(), path);
  const cut = await open(randomPath({ shape: 'llama-8b', type: 'bf16', layers: 3, seed: 1 }));
  expect(cut.id).toBe('llama-8b-bf16-3layers-seed1');
  expect(await cut.json('config.json')).toMatchObject({ num_hidden_layers: 3, hidden_size: 4096 });
  await expect(open('random:llama-9b-q4_k-seed1')).rejects.toThrow(/^random:llama-9b-q4_k-seed1: no such shape/);
});
