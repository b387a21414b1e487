/** Unpacks integer codes from the layouts of published checkpoints into words of four codes, the first in the lowest byte. */
import type { CodeRows } from './integer-matrix.ts';

type Unpack = CodeRows['unpack'];

/** The four nibbles of 16 bits, as four bytes. */
function spread(nibbles: number): number {
  const pairs = (nibbles | (nibbles << 8)) & 0x00ff00ff;
  return (pairs | (pairs << 4)) & 0x0f0f0f0f;
}

/** Rows of codes of `bits` each, which follow one another from the lowest bit of a row's words [rows, inRow] on. */
export function unpackRows(words: Uint32Array, inRow: number, bits: number): Unpack {
  if (bits === 4) return unpackNibbleRows(words, inRow);
  if (bits === 8) return unpackByteRows(words, inRow, 0);
  const [count, mask] = [Math.floor((inRow * 32) / bits), (1 << bits) - 1];
  return (codes, pitch, first, rows) => {
    for (let row = 0; row < rows; row++) {
      const from = (first + row) * inRow;
      codes.fill(0, row * pitch, (row + 1) * pitch);
      for (let i = 0; i < count; i++) {
        const word = from + ((i * bits) >> 5);
        const shift = (i * bits) & 31;
        const low = words[word]! >>> shift;
        // A code that begins in one word may end in the next.
        const code = (shift + bits > 32 ? low | (words[word + 1]! << (32 - shift)) : low) & mask;
        codes[row * pitch + (i >> 2)]! |= code << ((i & 3) * 8);
      }
    }
  };
}

function unpackNibbleRows(words: Uint32Array, inRow: number): Unpack {
  return (codes, pitch, first, rows) => {
    for (let row = 0; row < rows; row++) {
      const from = (first + row) * inRow;
      for (let i = 0, to = row * pitch; i < inRow; i++, to += 2) {
        const word = words[from + i]!;
        codes[to] = spread(word & 0xffff);
        codes[to + 1] = spread(word >>> 16);
      }
    }
  };
}

/** Rows of bytes, as words [rows, inRow]; `flipped` are bits to turn: 0x80808080 makes signed bytes unsigned. */
export function unpackByteRows(words: Uint32Array, inRow: number, flipped: number): Unpack {
  return (codes, pitch, first, rows) => {
    for (let row = 0; row < rows; row++) {
      const from = (first + row) * inRow;
      for (let i = 0; i < inRow; i++) codes[row * pitch + i] = words[from + i]! ^ flipped;
    }
  };
}

/** GPTQ: words [columns * bits / 32, rows] with 32 / bits codes that follow one another in a row; 4 or 8 bits. */
export function unpackGptq(words: Uint32Array, rows: number, bits: number): Unpack {
  const down = words.length / rows;
  if (bits === 8) {
    return (codes, pitch, first, count) => {
      for (let k = 0; k < down; k++) for (let row = 0; row < count; row++) codes[row * pitch + k] = words[k * rows + first + row]!;
    };
  }
  return (codes, pitch, first, count) => {
    for (let k = 0; k < down; k++) {
      const from = k * rows + first;
      for (let row = 0, to = 2 * k; row < count; row++, to += pitch) {
        const word = words[from + row]!;
        codes[to] = spread(word & 0xffff);
        codes[to + 1] = spread(word >>> 16);
      }
    }
  };
}

/** Where AWQ's GEMM packs row i of eight in a word: the nibble, from the lowest. */
export const AWQ_NIBBLES = [0, 4, 1, 5, 2, 6, 3, 7] as const;

/**
 * AWQ: words [columns, across], each with a column's codes of eight rows; the first `skip` rows are not wanted. The number of columns is a
 * multiple of 4.
 */
export function unpackAwq(words: Uint32Array, across: number, skip: number): Unpack {
  const quads = words.length / across / 4;
  // Four codes of each of eight rows.
  const eight = new Uint32Array(8);
  return (codes, pitch, first, count) => {
    const [begin, end] = [skip + first, skip + first + count];
    for (let quad = 0; quad < quads; quad++) {
      for (let word = begin >> 3; word * 8 < end; word++) {
        const at = quad * 4 * across + word;
        const a = words[at]!;
        const b = words[at + across]!;
        const c = words[at + 2 * across]!;
        const d = words[at + 3 * across]!;
        turnFour(a, b, c, d, eight, 0);
        turnFour(a >>> 4, b >>> 4, c >>> 4, d >>> 4, eight, 2);
        const above = word * 8 - begin;
        const high = Math.min(8, count - above);
        for (let row = Math.max(0, -above); row < high; row++) codes[(above + row) * pitch + quad] = eight[row]!;
      }
    }
  };
}

/** Takes the lower nibbles of the bytes, which belong to rows `to`, `to` + 4, `to` + 1 and `to` + 5 (AWQ_NIBBLES). */
function turnFour(a: number, b: number, c: number, d: number, eight: Uint32Array, to: number): void {
  const evens = (a & 0x000f000f) | ((b & 0x000f000f) << 8);
  const evensOfOthers = (c & 0x000f000f) | ((d & 0x000f000f) << 8);
  const odds = ((a >>> 8) & 0x000f000f) | (b & 0x0f000f00);
  const oddsOfOthers = ((c >>> 8) & 0x000f000f) | (d & 0x0f000f00);
  eight[to] = (evens & 0xffff) | (evensOfOthers << 16);
  eight[to + 4] = (odds & 0xffff) | (oddsOfOthers << 16);
  eight[to + 1] = (evens >>> 16) | (evensOfOthers & 0xffff0000);
  eight[to + 5] = (odds >>> 16) | (oddsOfOthers & 0xffff0000);
}
