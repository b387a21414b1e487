/** Blocks as files store them become weights on the device, to the bit as plain loops lay them out. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Device } from '../../engine/gpu/device.ts';
import { packBlocks, uploadGrid } from '../../engine/ops/pack-blocks.ts';
import { emptyLinear } from '../../engine/ops/pack-linear.ts';
import { WeightFill } from '../../engine/ops/weight-fill.ts';
import type { WordPlace } from '../../engine/ops/weight-place.ts';
import type { LinearPart } from '../../engine/ops/weight.ts';
import { createRng } from '../../engine/util/rng.ts';
import { BLOCK_FORMATS } from '../../engine/weights/block-types.ts';
import type { BlockType } from '../../engine/weights/block-types.ts';
import { testDevice } from '../support/device.ts';
import { packStored } from '../support/pack-stored.ts';
import { randomBlocks } from '../support/random-blocks.ts';
import { wordsOf } from '../support/words-of.ts';

const TYPES = Object.keys(BLOCK_FORMATS) as BlockType[];
/** Odd, so that pieces begin in the middle of a word; more than a workgroup. */
const ROWS = 11;

/** Infinity as a scale, where it is no f16 of two bytes: the largest of MXFP4 is a byte, and IQ1_M has four nibbles. */
const INFINITIES: Partial<Readonly<Record<BlockType, readonly number[]>>> = {
  MXFP4: [255], I8: [0, 0, 0x80, 0x7f], NVFP4: [0, 0, 0x80, 0x7f], IQ1_M: [0, 0, 0, 0, 0, 0xc0, 0, 0x70],
}; // prettier-ignore

/** What the device makes of the values [from, to) of rows of `width`, in two pieces as of two chunks, and its flags. */
async function packed(
  device: Device,
  type: BlockType,
  bytes: Uint8Array,
  width: number,
  place: WordPlace,
  { from, to } = { from: 0, to: width },
) {
  const columns = to - from;
  const weight = emptyLinear(device, 'packed', ROWS, columns, type, place);
  const [part] = weight.parts as [LinearPart];
  const raw = device.tensor('raw', 'u32', [Math.ceil(bytes.length / 4)]);
  device.write(raw, bytes);
  const flags = device.tensor('flags', 'u32', [3]);
  const rec = device.record('pack');
  const grid = uploadGrid(device, type);
  const shared = { raw, grid, width, column: from, columns, flags, tensor: 1 };
  const fill = new WeightFill(device, weight);
  for (const [begin, end] of [[0, 5], [5, ROWS]] as const) {
    for (const piece of fill.pieces(rec, begin, end)) packBlocks(rec, { ...shared, firstRow: piece.from, rows: piece.count, into: piece.into });
  } // prettier-ignore
  rec.submit();
  fill.finish();
  const found = { words: await wordsOf(device, part.weight), flags: [...(await device.read(flags))] };
  device.destroy(part.weight, raw, flags, ...(grid ? [grid] : []));
  return found;
}

async function expected(device: Device, type: BlockType, bytes: Uint8Array, columns: number, place: WordPlace): Promise<Uint32Array> {
  const [{ weight }] = packStored(device, 'expected', bytes, ROWS, columns, type, place).parts as [LinearPart];
  const words = await wordsOf(device, weight);
  device.destroy(weight);
  return words;
}

interface Rows {
  readonly bytes: Uint8Array;
  readonly width: number;
  readonly blocks: number;
}

/** Rows of an odd number of blocks, where a word of scales is half empty. */
function rowsOf(type: BlockType): Rows {
  const { values, bytes } = BLOCK_FORMATS[type];
  const blocks = values === 32 ? 5 : 3;
  return { bytes: randomBlocks(createRng(values + bytes), type, ROWS * blocks * values, true).bytes, width: blocks * values, blocks };
}

describe.each(['buffer', 'texture'] as const)('pack_blocks into a %s', (place) => {
  let device: Device;
  beforeAll(async () => {
    device = await testDevice();
  });
  afterAll(() => {
    expect(device.errors).toEqual([]);
    device.close();
  });

  test.each(TYPES)('whole rows of %s lie as from the host', async (type) => {
    const { bytes, width } = rowsOf(type);
    const found = await packed(device, type, bytes, width, place);
    expect(found.words).toEqual(await expected(device, type, bytes, width, place));
    expect(found.flags).toEqual([0, 0, 0]);
  });

  test.each(TYPES)('some columns of rows of %s do too', async (type) => {
    const { bytes, width, blocks } = rowsOf(type);
    const { values, bytes: blockBytes } = BLOCK_FORMATS[type];
    const found = await packed(device, type, bytes, width, place, { from: values, to: width });
    const rowBytes = blocks * blockBytes;
    const kept = Array.from({ length: ROWS }, (_, row) => [...bytes.subarray(row * rowBytes + blockBytes, (row + 1) * rowBytes)]).flat();
    expect(found.words).toEqual(await expected(device, type, Uint8Array.from(kept), width - values, place));
  });

  test.each(TYPES)('a scale of %s that is not finite is told', async (type) => {
    const { bytes, width, blocks } = rowsOf(type);
    const { bytes: blockBytes, places } = BLOCK_FORMATS[type];
    const { scale, offset } = { offset: undefined, ...places };
    for (const first of offset === undefined ? [scale] : [scale, offset]) {
      const bad = bytes.slice();
      const at = (7 * blocks + 2) * blockBytes + first;
      bad.set(INFINITIES[type] ?? [0, 0x7c], at);
      expect((await packed(device, type, bad, width, place)).flags).toEqual([0, 1, 0]);
    }
  });
});
