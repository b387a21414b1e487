/** A model of the smallest types of GGUF, mixed as in published files, gives the bits that its values give in F32. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Device } from '../../engine/gpu/device.ts';
import { createNodePlatform } from '../../engine/platform/node.ts';
import { createRng } from '../../engine/util/rng.ts';
import type { Rng } from '../../engine/util/rng.ts';
import { widenBlocks } from '../../engine/weights/block-format.ts';
import { BLOCK_FORMATS } from '../../engine/weights/block-types.ts';
import type { BlockType } from '../../engine/weights/block-types.ts';
import { withWeights } from '../../engine/weights/model-folder.ts';
import { openModelFolder } from '../../engine/weights/open-model-folder.ts';
import { STORAGE_TYPES } from '../../engine/weights/gguf/storage-types.ts';
import { blocksOf, randomBlocks } from '../../engine/weights/random/random-values.ts';
import { checkpointBytes } from '../../engine/weights/storage.ts';
import { DecoderHarness } from '../support/decoder-harness.ts';
import { testDevice } from '../support/device.ts';
import { ggufFile } from '../support/gguf-file.ts';
import type { StoredTensor } from '../support/gguf-file.ts';
import { llamaMetadata, llamaTensors } from '../support/llama-gguf.ts';
import type { PlannedTensor } from '../support/llama-gguf.ts';
import { folder, refusal, tiny, u32 } from '../support/tiny-gguf.ts';
import { floats } from '../support/gguf-fixtures.ts';
import { unlessPassed } from '../support/known-cases.ts';

const SHAPE = { hidden: 256, intermediate: 512, layers: 2, heads: 4, kvHeads: 2, headDim: 64, vocabulary: 96, maxPositions: 64 };
const STORAGE = { float: 'f32', keepBlocks: true, quantization: 'none' } as const;
/** Positions and rows, so that the angles of positions take little beside the weights. */
const FEW = { context: 32, rows: 8 } as const;
const platform = createNodePlatform({ log: () => undefined });

let device: Device;
beforeAll(async () => {
  device = await testDevice();
});
afterAll(() => {
  expect(device.errors).toEqual([]);
  device.close();
});

/** Types by tensor, of the first layer and of the second; q, k and v differ. */
const MIXED: readonly (readonly [RegExp, BlockType])[] = [
  [/^token_embd/, 'IQ3_S'],
  [/^output\./, 'IQ2_S'],
  [/^blk\.0\.attn_q/, 'IQ1_M'],
  [/^blk\.0\.attn_[kv]/, 'IQ2_XXS'],
  [/^blk\.0\.ffn_down/, 'TQ2_0'],
  [/^blk\.0\./, 'IQ3_XXS'],
  [/^blk\.1\.attn/, 'IQ2_XS'],
  [/^blk\.1\.ffn_down/, 'TQ1_0'],
  [/^blk\.1\./, 'IQ1_S'],
];

/** A file of random weights, in these types or as the same values in F32. */
function fileOf(types: typeof MIXED, unpacked: boolean): Uint8Array {
  const tensors = Object.entries(llamaTensors(SHAPE, 'F32')).map(([name, planned], i) => {
    const [, type] = types.find(([pattern]) => pattern.test(name)) ?? [];
    return [name, type && planned.dimensions.length === 2 ? random(type, planned, i, unpacked) : ones(planned)] as const;
  });
  return ggufFile({ metadata: { ...llamaMetadata(SHAPE), 'general.file_type': u32(29) }, tensors: Object.fromEntries(tensors) });
}

const ones = ({ dimensions, type, bytes }: PlannedTensor): StoredTensor => ({ dimensions, type, data: new Uint8Array(new Float32Array(bytes / 4).fill(1).buffer) }); // prettier-ignore

function random(kind: BlockType, { dimensions }: PlannedTensor, seed: number, unpacked: boolean): StoredTensor {
  const count = dimensions[0]! * dimensions[1]!;
  const data = blocksOf(randomBlocks(seed, kind, dimensions[0]!), { from: 0, to: count / BLOCK_FORMATS[kind].values });
  const [type] = [...STORAGE_TYPES].find(([, { name }]) => name === kind)!;
  if (!unpacked) return { dimensions, type, data };
  const values = new Float32Array(count);
  widenBlocks(BLOCK_FORMATS[kind], data, values);
  return { dimensions, type: 0, data: new Uint8Array(values.buffer) };
}

test('matrices of all of them give the logits of their values, in the memory that is planned', async () => {
  const at = folder();
  const [packed, unpacked] = [join(at, 'm-IQ2_M.gguf'), join(at, 'm-F32.gguf')];
  writeFileSync(packed, fileOf(MIXED, false));
  writeFileSync(unpacked, fileOf(MIXED, true));
  const step = [{ sequence: 0, start: 0, tokens: [3, 14, 15, 92, 65, 35] }];
  for (const storage of [STORAGE, { ...STORAGE, keepBlocks: false }]) {
    const model = await openModelFolder(platform, packed);
    expect([model.id, model.format]).toEqual(['m', 'GGUF IQ2_M']);
    const planned = await withWeights(model, async (checkpoint) => checkpointBytes(checkpoint, storage));
    await unlessPassed(
      device,
      { expected: [] },
      async (on) => {
        const expected = await (await DecoderHarness.load(on, unpacked, { storage: STORAGE, ...FEW })).step(step);
        const harness = await DecoderHarness.load(on, packed, { storage, ...FEW });
        expect(harness.weightBytes / planned).toBeGreaterThan(1);
        expect(harness.weightBytes / planned).toBeLessThan(1.1);
        // One row, by the kernels of one.
        return { expected, found: await harness.step(step), alone: await harness.step([{ sequence: 1, start: 0, tokens: [3] }]) };
      },
      ({ expected, found, alone }) => {
        expect(found).toEqual(expected);
        expect(alone[0]).toEqual(expected[0]);
      },
    );
  }
});

test('NVFP4 with a scale of the tensor, with one of each expert, and without', async () => {
  const rng = createRng(3);
  const names = ['blk.0.attn_q.weight', 'blk.0.ffn_gate.weight', 'blk.1.ffn_down.weight'];
  const scales = new Map([['blk.0.attn_q', 0.37], ['blk.0.ffn_gate', 1e-3]]); // prettier-ignore
  const fileWith = (unpacked: boolean): Uint8Array => {
    const tensors = Object.entries(llamaTensors(SHAPE, 'F32')).flatMap(([name, planned], i) => {
      if (!names.includes(name))
        return [[name, planned.dimensions.length === 2 ? random('Q8_0', planned, i, false) : ones(planned)] as const];
      const base = name.replace('.weight', '');
      const scale = scales.get(base);
      const stored = nvfp4(createRng(i), planned.dimensions);
      if (unpacked)
        return [
          [
            name,
            floats(
              widened(stored, () => scale ?? 1),
              planned.dimensions,
            ),
          ] as const,
        ];
      const beside = scale === undefined ? [] : [[`${base}.scale`, floats(Float32Array.of(scale), [1])] as const, [`${base}.input_scale`, floats(Float32Array.of(2), [1])] as const]; // prettier-ignore
      return [[name, { dimensions: planned.dimensions, type: NVFP4, data: stored }] as const, ...beside];
    });
    return ggufFile({ metadata: { ...llamaMetadata(SHAPE), 'general.file_type': u32(39) }, tensors: Object.fromEntries(tensors) });
  };
  const at = folder();
  const [packed, unpacked] = [join(at, 'm-NVFP4.gguf'), join(at, 'm-F32.gguf')];
  writeFileSync(packed, fileWith(false));
  writeFileSync(unpacked, fileWith(true));
  const step = [{ sequence: 0, start: 0, tokens: [3, 14, 15, 92, 65, 35] }];
  await unlessPassed(
    device,
    { expected: [] },
    async (on) => {
      const logitsOf = async (file: string, keepBlocks: boolean) =>
        (await DecoderHarness.load(on, file, { storage: { ...STORAGE, keepBlocks }, ...FEW })).step(step);
      return [await logitsOf(unpacked, STORAGE.keepBlocks), await logitsOf(packed, true), await logitsOf(packed, false)];
    },
    ([expected, ...found]) => expect(found).toEqual([expected, expected]),
  );
  expect((await openModelFolder(platform, packed)).format).toBe('GGUF NVFP4');

  // A stack of experts, whose parts are read.
  const stored = nvfp4(rng, [128, 8, 3]);
  const path = join(at, 'experts.gguf');
  const { metadata, tensors } = tiny();
  const experts = { 'blk.0.x_exps.weight': { dimensions: [128, 8, 3], type: NVFP4, data: stored }, 'blk.0.x_exps.scale': floats(Float32Array.of(2, 0.3, 5), [3]) }; // prettier-ignore
  writeFileSync(path, ggufFile({ metadata, tensors: { ...tensors, ...experts } }));
  await withWeights(await openModelFolder(platform, path), async (checkpoint) => {
    const name = 'blk.0.x_exps.weight';
    expect(checkpoint.names().filter((stored) => stored.includes('x_exps'))).toEqual([name]);
    const values = widened(stored, (block) => [2, 0.3, 5][Math.floor(block / 16)]!);
    expect(await checkpoint.read(name)).toEqual(values);
    expect(await checkpoint.read(name, { from: 1000, to: 2100 })).toEqual(values.slice(1000, 2100));
    const blocks = await checkpoint.blocks!(name, { from: 7, to: 17 });
    const found = new Float32Array(10 * 128);
    widenBlocks(BLOCK_FORMATS.NVFP4, blocks, found);
    expect(found).toEqual(values.slice(7 * 128, 17 * 128));
  });
});

test('scales of NVFP4 that are no numbers for its tensor or its experts are refused', async () => {
  const { metadata, tensors } = tiny();
  const weight = { dimensions: [64, 2, 2], type: NVFP4, data: nvfp4(createRng(1), [64, 2, 2]) };
  const content = { metadata, tensors: { ...tensors, 'blk.0.x.weight': weight, 'blk.0.x.scale': floats(new Float32Array(3), [3]) } };
  expect(await refusal(content)).toContain('tensor blk.0.x.scale is F32 [3], expected a number, or 2');
});

/** ggml's number of NVFP4. */
const NVFP4 = 40;

/** Blocks of 36 bytes as a file has them: E4M3 floats from 1/8 to 1, and codes. */
function nvfp4(rng: Rng, dimensions: readonly number[]): Uint8Array {
  const blocks = dimensions.reduce((a, b) => a * b, 1) / 64;
  return Uint8Array.from({ length: blocks * 36 }, (_, i) => (i % 36 < 4 ? 0x20 + rng.integer(24) : rng.integer(256)));
}

/** Their values in f32. */
function widened(stored: Uint8Array, scaleOf: (block: number) => number): Float32Array {
  const values = new Float32Array((stored.length / 36) * 64);
  STORAGE_TYPES.get(NVFP4)!.widen(stored, values);
  // Rounded where the engine does it: the scale of 16 values first.
  return values.map((value, i) => {
    const code = stored[Math.floor(i / 64) * 36 + 4 + 8 * (Math.floor(i / 16) % 4) + (i % 8)]! >> (4 * (Math.floor(i / 8) % 2));
    const step = [0, 1, 2, 3, 4, 6, 8, 12][code & 7]! * (code & 8 ? -1 : 1);
    return step === 0 ? value : Math.fround(Math.fround((value / step) * Math.fround(scaleOf(Math.floor(i / 64)))) * step);
  });
}
