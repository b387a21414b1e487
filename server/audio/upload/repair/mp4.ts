/**
 * Reads fragmented MP4 files on behind damage in their middle, and takes joined MP4 files apart. What is damaged becomes part of the box before it, so that all that
 * follows keeps its place. Source: ISO/IEC 14496-12.
 */
import type { FileBytes } from '../../../../engine/audio/wav.ts';
import { eachBox } from '../mp4-boxes.ts';
import type { Box } from '../mp4-boxes.ts';
import { MAX_PARTS, Pieces, cutOut, search } from './part.ts';
import type { Part } from './part.ts';

/** Most boxes of a file that are examined. */
const MAX_BOXES = 1 << 20;
const HEAD_BYTES = 8;

/** Parts of an MP4 file: one for each file that was joined to it. */
export function mp4Parts(bytes: FileBytes): Part[] {
  const walk = new Walk(bytes);
  let [at, last] = [0, 0];
  for (let count = 0; count < MAX_BOXES && at < bytes.length; count++) {
    const box = boxAt(bytes, at);
    if (box) {
      if (!walk.take(box, at)) break;
      last = at;
      at = box.to;
      continue;
    }
    // Samples that end behind the file, or the box before, may be what has the wrong size.
    if (typeAt(bytes, at) === 'mdat') last = at;
    const from = FRAGMENT.has(typeAt(bytes, last)) ? last : at;
    const next = walk.hasMoov ? search(bytes, from + HEAD_BYTES, [0], (place) => isFragment(bytes, place)) : undefined;
    if (next === undefined || !walk.leaveOut(from, next)) break;
    last = at = next;
  }
  return walk.finish(bytes.length);
}

/** The box here; undefined where no box is, or one that ends behind the file. */
function boxAt(bytes: FileBytes, at: number): Box | undefined {
  const box = eachBox(bytes, { type: '', from: at, to: bytes.length }).next().value;
  return box && /^[\x20-\x7e]{4}$/.test(box.type) ? box : undefined;
}

const typeAt = (bytes: FileBytes, at: number): string => String.fromCharCode(...bytes.subarray(at + 4, at + 8));

/** Boxes of a fragment. */
const FRAGMENT: ReadonlySet<string> = new Set(['moof', 'mdat']);

/** Whether a fragment begins here: a box of less than 16 MiB that has its number first. */
const isFragment = (bytes: FileBytes, at: number): boolean =>
  typeAt(bytes, at) === 'moof' && typeAt(bytes, at + HEAD_BYTES) === 'mfhd' && boxAt(bytes, at) !== undefined;

/** The parts of a file as they are found. */
class Walk {
  hasMoov = false;
  readonly #bytes: FileBytes;
  readonly #done: Part[] = [];
  /** What of the current part lies before `#at`. */
  #pieces: FileBytes[] = [];
  #at = 0;

  constructor(bytes: FileBytes) {
    this.#bytes = bytes;
  }

  /** Takes a box; false if there are too many files. */
  take({ type }: Box, at: number): boolean {
    if (type === 'ftyp' && this.hasMoov) {
      this.finish(at);
      this.hasMoov = false;
    }
    this.hasMoov ||= type === 'moov';
    return this.#done.length < MAX_PARTS;
  }

  /** Puts the bytes [from, to) into one box; false if that was the case too often. */
  leaveOut(from: number, to: number): boolean {
    const head = new Uint8Array(HEAD_BYTES);
    new DataView(head.buffer).setUint32(0, to - from);
    // Of the samples, those before the damage can be heard.
    head.set(new TextEncoder().encode(typeAt(this.#bytes, from) === 'mdat' ? 'mdat' : 'free'), 4);
    this.#pieces.push(cutOut(this.#bytes, this.#at, from), head);
    this.#at = from + HEAD_BYTES;
    return this.#pieces.length < 2 * MAX_PARTS;
  }

  /** Ends the current part, and returns all. */
  finish(to: number): Part[] {
    const rest = cutOut(this.#bytes, this.#at, to);
    this.#done.push({ bytes: this.#pieces.length === 0 ? rest : new Pieces([...this.#pieces, rest]), isDamaged: this.#pieces.length > 0 });
    this.#pieces = [];
    this.#at = to;
    return this.#done;
  }
}
