/** What repairs make of a file: the files that it consists of, each as its reader takes it. */
import type { FileBytes } from '../../../../engine/audio/wav.ts';
import { Spliced } from '../headers.ts';

/** One file of those that an upload consists of. */
export interface Part {
  readonly bytes: FileBytes;
  /** Whether a piece of its middle could not be read and was left out. */
  readonly isDamaged: boolean;
}

/** Most files that one is taken apart into, and most places at which a file is repaired; this bounds the work for a file of nothing but headers. */
export const MAX_PARTS = 1_000;
/** Bytes that are searched at a time: few at first, since the next place is mostly near, and a copy of many for each place would take long. */
const [FIRST_BYTES, MOST_BYTES] = [1 << 8, 1 << 20];

/** Bytes [from, to) of a file. */
export interface Range {
  readonly from: number;
  readonly to: number;
}

/** A view of a part of a file. */
export const cutOut = (bytes: FileBytes, from: number, to: number): FileBytes => new Spliced(new Uint8Array(), bytes, from, to - from);

/**
 * Offset of the first place from `from` on at which `isPlace` holds. It is asked only where the byte is one of `first`, so that a large file is searched quickly;
 * undefined if there is none.
 */
export function search(bytes: FileBytes, from: number, first: readonly number[], isPlace: (at: number) => boolean): number | undefined {
  const isFirst = new Uint8Array(256);
  for (const byte of first) isFirst[byte] = 1;
  let size = FIRST_BYTES;
  for (let at = from; at < bytes.length; at += size, size = Math.min(2 * size, MOST_BYTES)) {
    const window = bytes.subarray(at, at + size);
    for (let i = 0; i < window.length; i++) if (isFirst[window[i]!] && isPlace(at + i)) return at + i;
  }
  return undefined;
}

/** The bytes from `at` on as text; what lies outside of the file is absent. */
export const textAt = (bytes: FileBytes, at: number, length: number): string =>
  at < 0 ? '' : String.fromCharCode(...bytes.subarray(at, at + length));

/** Whether all bytes from `from` on are 0: writers pad files with them. */
export const isPadding = (bytes: FileBytes, from: number): boolean => search(bytes, from, NOT_ZERO, () => true) === undefined;

const NOT_ZERO = Array.from({ length: 255 }, (_, i) => i + 1);

/** A file made of pieces of others, without a copy of them. */
export class Pieces implements FileBytes {
  readonly length: number;
  readonly #pieces: readonly FileBytes[];
  /** Offset of each piece's first byte. */
  readonly #starts: readonly number[];

  constructor(pieces: readonly FileBytes[]) {
    const starts: number[] = [];
    let length = 0;
    this.#pieces = pieces.filter((piece) => piece.length > 0);
    for (const piece of this.#pieces) {
      starts.push(length);
      length += piece.length;
    }
    this.#starts = starts;
    this.length = length;
  }

  subarray(from: number, to = this.length): Uint8Array {
    const [first, end] = [Math.max(0, from), Math.min(to, this.length)];
    if (first >= end) return new Uint8Array();
    let index = this.#pieceOf(first);
    const view = this.#pieces[index]!.subarray(first - this.#starts[index]!, end - this.#starts[index]!);
    if (view.length === end - first) return view;
    const joined = new Uint8Array(end - first);
    joined.set(view);
    for (let at = first + view.length; at < end;) {
      const piece = this.#pieces[++index]!.subarray(0, end - at);
      joined.set(piece, at - first);
      at += piece.length;
    }
    return joined;
  }

  #pieceOf(at: number): number {
    let [low, high] = [0, this.#starts.length - 1];
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (this.#starts[middle]! <= at) low = middle;
      else high = middle - 1;
    }
    return low;
  }
}
