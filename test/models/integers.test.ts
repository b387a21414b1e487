/**
 * Decoders with integer-quantised weights give the logits that transformers gives in f32 on the dequantised weights, whole and split, in the
 * memory that was planned. What the weights are, test/engine/integers.test.ts checks; test/tools/dump_integers.py writes the fixtures.
 */
import { cpSync, mkdtempSync, readFileSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { resolveConfig } from '../../engine/config.ts';
import type { Device } from '../../engine/gpu/device.ts';
import { createNodePlatform } from '../../engine/platform/node.ts';
import { describeModel } from '../../engine/tasks/describe-model.ts';
import { withWeights } from '../../engine/weights/model-folder.ts';
import { openModelFolder } from '../../engine/weights/open-model-folder.ts';
import { checkpointBytes, matrixBytes } from '../../engine/weights/storage.ts';
import { expectClose } from '../support/compare.ts';
import { DecoderHarness } from '../support/decoder-harness.ts';
import { testDeviceForRanks } from '../support/device.ts';
import { writeNumberTokenizer } from '../support/random-checkpoint.ts';
import { answer, greedyAfter, withChat } from '../support/split-chat.ts';
import { THOROUGH } from '../support/thorough.ts';

const FIXTURES = fileURLToPath(new URL('../fixtures/integers/', import.meta.url));
const VOCABULARY = 64;
const BLOCKS = { float: 'f32', keepBlocks: true, quantization: 'none' } as const;
/** One fixture for each type of blocks, and of floats; all of them where every test is run. */
const SOME = ['gptq', 'awq', 'compressed-8', 'compressed-bytes', 'mlx', 'mlx-8', 'bitsandbytes', 'nvfp4'];
const NAMES = THOROUGH ? readdirSync(FIXTURES).sort() : SOME;

interface Golden {
  readonly prompt: readonly number[];
  readonly logits: readonly (readonly number[])[];
}
const goldenOf = (name: string): Golden => JSON.parse(readFileSync(join(FIXTURES, name, 'golden.json'), 'utf8')) as Golden;

let device: Device;
beforeAll(async () => {
  device = await testDeviceForRanks();
});
afterAll(() => device.close());

test.each(NAMES)('%s: the logits are those of transformers on the same values, in blocks and in floats', async (name) => {
  const { prompt, logits } = goldenOf(name);
  const step = [{ sequence: 0, start: 0, tokens: prompt }];
  const expected = logits.flat();
  const last = (rows: readonly Float32Array[]): number[] => rows.slice(-logits.length).flatMap((row) => [...row]);
  const [floats, blocks] = [
    await DecoderHarness.load(device, join(FIXTURES, name), { rows: 16 }),
    await DecoderHarness.load(device, join(FIXTURES, name), { storage: BLOCKS, rows: 16 }),
  ];
  // Rounding of f32 sums in another order; the weights have the same bits.
  expectClose(`${name} in floats`, last(await floats.step(step)), expected, 1e-11);
  expectClose(`${name} in blocks`, last(await blocks.step(step)), expected, 1e-10);
  expect(device.errors).toEqual([]);
});

const storage = { float: 'f16', keepBlocks: true, quantization: 'none' } as const;

test.each([
  ['gptq', 'Q4_0'],
  ['awq', 'Q5_0'],
  ['mlx-8', 'U8'],
  ['compressed-act-order', 'f16'],
] as const)('%s is planned for as %s', async (name, type) => {
  const folder = await openModelFolder(createNodePlatform(), join(FIXTURES, name));
  await withWeights(folder, async (checkpoint) => {
    const only = { takes: (key: string) => key.endsWith('q_proj.weight') };
    expect(checkpointBytes(checkpoint, storage, only)).toBe(matrixBytes(type, 64, 64));
  });
});

test('a model says what its weights are quantised with', async () => {
  const described = await describeModel(createNodePlatform(), { path: join(FIXTURES, 'awq') }, resolveConfig({}));
  expect(described).toMatchObject({ architecture: 'qwen2', format: 'AWQ 4-bit' });
});

test.each(THOROUGH ? ['gptq', 'gptq-act-order', 'awq', 'compressed', 'compressed-bytes', 'mlx'] : ['awq'])(
  '%s split over two adapters gives the same tokens',
  async (name) => {
    const folder = mkdtempSync(join(tmpdir(), 'parley-integers-'));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    cpSync(join(FIXTURES, name), folder, { recursive: true });
    writeNumberTokenizer(folder, VOCABULARY);
    const ask = (tpSize: number): Promise<string> =>
      withChat(device, folder, { tpSize, rankThreads: false, dtype: 'auto', contextLength: 128 }, async (engine) => {
        return (await answer(engine, greedyAfter(goldenOf(name).prompt, 12))).text;
      });
    expect(await ask(2)).toBe(await ask(1));
  },
);
