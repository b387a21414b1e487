/** Random weights without a file: the device generates the bytes that a file would have, and packs them as it packs a file's. */
import { defineKernel } from '../gpu/kernel.ts';
import type { Recorder } from '../gpu/recorder.ts';
import type { Tensor } from '../gpu/tensor.ts';
import { ceilDiv, sizeOf } from '../util/math.ts';
import type { Range } from '../util/math.ts';
import type { BlockFormat } from '../weights/block-format.ts';
import { BLOCK_FORMATS } from '../weights/block-types.ts';
import type { RandomBlocks, RandomFloats, StoredFloat } from '../weights/checkpoint.ts';
import { scaleBytes } from '../weights/random/random-values.ts';
import { SOURCES } from './pack-floats.ts';

const FRAGMENTS = ['lib/grid.wgsl', 'lib/random_bits.wgsl'];
const WG = 64;

export const RANDOM_FLOATS = defineKernel({
  file: 'load/random_floats.wgsl',
  fragments: () => FRAGMENTS,
  bindings: { raw: 'write' },
  params: { count: 'u32', first: 'u32', seed: 'u32', exponent: 'i32' },
  overrides: { WG: 'u32', SOURCE: 'u32' },
});

export const RANDOM_BLOCKS = defineKernel({
  file: 'load/random_blocks.wgsl',
  fragments: () => FRAGMENTS,
  bindings: { raw: 'write' },
  params: { words: 'u32', first: 'u32', seed: 'u32', scale: 'u32', offset: 'u32' },
  consts: ['STORED_BYTES', 'SCALE_AT', 'SCALE_BYTES', 'OFFSET_AT', 'HAS_OFFSET'],
  overrides: { WG: 'u32' },
});

/** raw = values [from, to) of a random tensor, as a file of this type would store them. */
export function randomFloats(
  rec: Recorder,
  {
    raw,
    random,
    values,
    source,
  }: { readonly raw: Tensor; readonly random: RandomFloats; readonly values: Range; readonly source: StoredFloat },
): void {
  const { seed, exponent } = random;
  const count = sizeOf(values);
  const words = source === 'F32' ? count : ceilDiv(count, 2);
  rec.dispatch(RANDOM_FLOATS, { overrides: { WG, SOURCE: SOURCES[source] } }, { raw }, { count, first: values.from, seed, exponent }, [
    ceilDiv(words, WG),
  ]);
}

/** raw = blocks [from, to) of a random tensor, as a file would store them. */
export function randomBlocks(
  rec: Recorder,
  { raw, random, blocks }: { readonly raw: Tensor; readonly random: RandomBlocks; readonly blocks: Range },
): void {
  const { type, seed, scale, offset } = random;
  const format: BlockFormat = BLOCK_FORMATS[type];
  const { bytes, places } = format;
  const words = ceilDiv(sizeOf(blocks) * bytes, 4);
  const consts = {
    STORED_BYTES: bytes, SCALE_AT: places.scale, SCALE_BYTES: scaleBytes(format), OFFSET_AT: places.offset ?? 0, HAS_OFFSET: places.offset === undefined ? 0 : 1,
  }; // prettier-ignore
  rec.dispatch(RANDOM_BLOCKS, { storage: type, consts, overrides: { WG } }, { raw }, { words, first: blocks.from, seed, scale, offset }, [
    ceilDiv(words, WG),
  ]);
}
