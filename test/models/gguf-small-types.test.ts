/** A model of the smallest types of GGUF, mixed as in published files, gives the bits that its values give in F32. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Device } from '../../engine/gpu/device.ts';
import { createNodePlatform } from '../../engine/platform/node.ts';
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
import { folder, u32 } from '../support/tiny-gguf.ts';

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
  const data = blocksOf(randomBlocks(seed, kind, dimensions[0]!), { from: 0, to: count / 256 });
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
  const expected = await (await DecoderHarness.load(device, unpacked, { storage: STORAGE, ...FEW })).step(step);
  for (const storage of [STORAGE, { ...STORAGE, keepBlocks: false }]) {
    const harness = await DecoderHarness.load(device, packed, { storage, ...FEW });
    const found = await harness.step(step);
    expect(found).toEqual(expected);
    const model = await openModelFolder(platform, packed);
    expect([model.id, model.format]).toEqual(['m', 'GGUF IQ2_M']);
    const planned = await withWeights(model, async (checkpoint) => checkpointBytes(checkpoint, storage));
    expect(harness.weightBytes / planned).toBeGreaterThan(1);
    expect(harness.weightBytes / planned).toBeLessThan(1.1);
    // One row, by the kernels of one.
    const alone = await harness.step([{ sequence: 1, start: 0, tokens: [3] }]);
    expect(alone[0]).toEqual(expected[0]);
  }
});
