/** Stored blocks as they lie on a device (shaders/load/pack_blocks.wgsl), by plain loops on what BlockFormat.open finds. */
import { BLOCK, openBlock, rowWords } from '../../weights/block-format.ts';
import type { BlockFormat, OpenBlock } from '../../weights/block-format.ts';

/** Rows that are packed together: as many as fill a cache line of words. */
const TILE = 16;

/**
 * Stored rows for the device: [words of a row][padded] u32, so that neighbouring rows (columns of the product) lie beside each other. A
 * code's low bits are in a word of their block with those of its neighbours: word w of 4-bit codes has codes 8 w + i in nibble 2 i and 8 w
 * + 4 + i in nibble 2 i + 1, so that a shift and a mask leave four codes in the four bytes; 2 bits alike, 16 codes a word. The high bits of
 * quad i are bits i, or 2 i, of the bytes.
 */
export function packBlocks(format: BlockFormat, bytes: Uint8Array, rows: number, columns: number, padded: number): Uint32Array {
  const blocks = columns / BLOCK;
  const words = rowWords(format, blocks);
  const out = new Uint32Array(words.all * padded);
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const stored = columns / format.values;
  const block = openBlock();
  const inOne = format.values / BLOCK;
  for (let tile = 0; tile < rows; tile += TILE) {
    const last = Math.min(rows, tile + TILE);
    for (let s = 0; s < stored; s++) {
      for (let row = tile; row < last; row++) {
        format.open(view, (row * stored + s) * format.bytes, block, format.places);
        for (let b = 0; b < inOne; b++)
          packCodes(format, block.codes, b * 8, out, (s * inOne + b) * (format.low + format.high) * padded + row, padded);
        packScales(format, block, s * inOne, words, out, row, padded);
      }
    }
  }
  return out;
}

/** Eight quads from `first` on. */
function packCodes({ low, high }: BlockFormat, codes: Uint32Array, first: number, out: Uint32Array, at: number, padded: number): void {
  const perWord = 8 / low;
  const mask = low === 2 ? 0x03030303 : low === 4 ? 0x0f0f0f0f : 0xffffffff;
  for (let w = 0; w < low; w++) {
    let word = 0;
    for (let q = 0; q < perWord; q++) word |= (codes[first + w * perWord + q]! & mask) << (q * low);
    out[at + w * padded] = word;
  }
  for (let w = 0; w < high; w++) {
    let word = 0;
    const quads = 8 / high;
    for (let q = 0; q < quads; q++)
      word |= ((codes[first + w * quads + q]! >>> low) & (high === 1 ? 0x01010101 : 0x03030303)) << (q * high);
    out[at + (low + w) * padded] = word;
  }
}

/**
 * The scales of an open block whose first block on the device is `block`. No function is made in here: that would take longer than all
 * else.
 */
function packScales(
  format: BlockFormat,
  open: OpenBlock,
  block: number,
  words: ReturnType<typeof rowWords>,
  out: Uint32Array,
  row: number,
  padded: number,
): void {
  const { scales: kind, group } = format;
  const start = words.codes * padded + row;
  if (kind === 'half') out[start + (block >> 1) * padded]! |= open.scale << ((block & 1) * 16);
  else if (kind === 'half_offset') out[start + block * padded] = open.scale | (open.offset << 16);
  else if (kind === 'row') out[start] = open.scale;
  else if (kind === 'exponent') out[start + (block >> 2) * padded]! |= open.scale << ((block & 3) * 8);
  else {
    const groups = format.values / group;
    // Groups of 16 with offsets have both numbers in a byte.
    const bits = kind !== 'small_offset' || group === 16 ? 8 : 16;
    const inWord = 32 / bits;
    const first = start + ((block * (BLOCK / group)) / inWord) * padded;
    for (let g = 0; g < groups; g++) {
      const both = kind !== 'small_offset' ? open.scales[g]! & 0xff : open.scales[g]! | (open.offsets[g]! << (bits / 2));
      out[first + Math.floor(g / inWord) * padded]! |= both << ((g % inWord) * bits);
    }
    out[start + (words.scales + (block >> 3)) * padded] = open.scale | (open.offset << 16);
  }
}
