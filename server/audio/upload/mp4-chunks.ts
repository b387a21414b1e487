/** Finds the samples of a track in an MP4 file, if they all have one size: in the chunks of its table, and in its fragments. Source: ISO/IEC 14496-12. */
import { EngineError } from '../../../engine/errors.ts';
import type { FileBytes } from '../../../engine/audio/wav.ts';
import { viewOf } from './headers.ts';
import { boxes, eachBox, find, whole } from './mp4-boxes.ts';
import type { Box } from './mp4-boxes.ts';

/** Contiguous bytes of sound, as an offset in the file and a length. */
export interface Chunk {
  readonly from: number;
  readonly length: number;
}

/** Most chunks. Real files have one for each fraction of a second; this bounds the work for a file of nothing but tables. */
const MAX_CHUNKS = 1 << 20;
/** Most boxes examined in a fragment, and in a track of one. */
const MAX_INNER = 12;
/** Bytes of a box's header. */
const BOX_BYTES = 8;

/**
 * Lists all chunks of the track in order, as they are declared: the last may lie beyond the end of the file. They hold whole frames. With `isRough`, a file in
 * fragments, which takes long to search, gives one chunk that is at least as large as all of them.
 */
export function chunksOf(bytes: FileBytes, track: Box, frameBytes: number, isRough: boolean): Chunk[] {
  const extensions = find(bytes, whole(bytes), 'moov', 'mvex');
  if (extensions && isRough) return [{ from: 0, length: bytes.length - (bytes.length % frameBytes) }];
  const chunks = new Chunks(bytes.length, frameBytes);
  const table = find(bytes, track, 'mdia', 'minf', 'stbl');
  if (table) addTable(bytes, table, chunks);
  if (extensions) addFragments(bytes, track, extensions, chunks);
  return chunks.all;
}

class Chunks {
  readonly all: Chunk[] = [];
  readonly frameBytes: number;
  /** Bytes that chunks may still have: chunks that share bytes would make hours of a small file. */
  #room: number;

  constructor(fileBytes: number, frameBytes: number) {
    this.frameBytes = frameBytes;
    this.#room = fileBytes;
  }

  /** Adds a chunk; returns false if there is no room for more. */
  add(from: number, length: number): boolean {
    if (this.#room <= 0) return false;
    if (this.all.length >= MAX_CHUNKS)
      throw new EngineError('invalid_audio', `the MP4 file has its sound in more than ${MAX_CHUNKS} pieces`);
    const last = this.all.at(-1);
    this.#room -= length;
    if (last && last.from + last.length === from) this.all[this.all.length - 1] = { from: last.from, length: last.length + length };
    else if (length > 0) this.all.push({ from, length });
    return true;
  }
}

/** A table of numbers after a box's version and flags, `width` bytes each; its count is limited to those that are there. */
function numbers(
  bytes: FileBytes,
  box: Box | undefined,
  width: 4 | 8,
  columns = 1,
): { readonly count: number; at(row: number, column?: number): number } {
  if (!box || box.to - box.from < 8) return { count: 0, at: () => 0 };
  const view = viewOf(bytes, box.from, box.to);
  const rowBytes = width * columns;
  const count = Math.min(view.getUint32(4), Math.floor((view.byteLength - 8) / rowBytes));
  const at = (row: number, column = 0): number => {
    const place = 8 + row * rowBytes + column * width;
    return width === 8 ? Number(view.getBigUint64(place)) : view.getUint32(place);
  };
  return { count, at };
}

function addTable(bytes: FileBytes, table: Box, chunks: Chunks): void {
  const short = find(bytes, table, 'stco');
  const offsets = short ? numbers(bytes, short, 4) : numbers(bytes, find(bytes, table, 'co64'), 8);
  const runs = numbers(bytes, find(bytes, table, 'stsc'), 4, 3);
  const sizeOf = sampleSizes(bytes, find(bytes, table, 'stsz'), chunks.frameBytes);
  let sample = 0;
  for (let chunk = 0, run = 0; chunk < offsets.count && runs.count > 0; chunk++) {
    // Chunks are numbered from 1.
    while (run + 1 < runs.count && runs.at(run + 1) <= chunk + 1) run++;
    const count = runs.at(run, 1);
    if (!chunks.add(offsets.at(chunk), sizeOf(sample, count))) return;
    sample += count;
  }
}

/** Returns a function that gives the bytes of `count` samples from `first` on. */
function sampleSizes(bytes: FileBytes, box: Box | undefined, frameBytes: number): (first: number, count: number) => number {
  const same = box && box.to - box.from >= 12 ? viewOf(bytes, box.from, box.to).getUint32(4) : frameBytes;
  // QuickTime writes 1, or the bytes of one channel, and means a frame.
  if (same !== 0) return (_, count) => count * (same % frameBytes === 0 ? same : frameBytes);
  const sizes = numbers(bytes, { ...box!, from: box!.from + 4 }, 4);
  return (first, count) => {
    let sum = 0;
    for (let at = first; at < Math.min(first + count, sizes.count); at++) sum += sizes.at(at);
    return sum - (sum % frameBytes);
  };
}

/** Flags of tfhd and trun. */
const [HAS_BASE, HAS_DESCRIPTION, HAS_DURATION, HAS_SIZE] = [1, 2, 8, 0x10];
const [HAS_OFFSET, HAS_FIRST_FLAGS] = [1, 4];
const SAMPLE_FIELDS = [0x100, 0x200, 0x400, 0x800];
const SAMPLE_SIZE = 0x200;

function addFragments(bytes: FileBytes, track: Box, extensions: Box, chunks: Chunks): void {
  const tkhd = find(bytes, track, 'tkhd');
  if (!tkhd || tkhd.to - tkhd.from < 24) return;
  const head = viewOf(bytes, tkhd.from, tkhd.to);
  const id = head.getUint32(head.getUint8(0) === 1 ? 20 : 12);
  const defaults = boxes(bytes, extensions).filter(({ type, from, to }) => type === 'trex' && to - from >= 24);
  const own = defaults.map(({ from, to }) => viewOf(bytes, from, to)).find((view) => view.getUint32(4) === id);
  const usual = own?.getUint32(16) || chunks.frameBytes;
  for (const moof of eachBox(bytes, whole(bytes))) {
    if (moof.type !== 'moof') continue;
    for (const traf of boxes(bytes, moof, MAX_INNER).filter(({ type }) => type === 'traf'))
      addRuns(bytes, { moof, traf, id, usual }, chunks);
  }
}

interface Fragment {
  readonly moof: Box;
  readonly traf: Box;
  /** The track's number, and the default size of its samples in bytes. */
  readonly id: number;
  readonly usual: number;
}

function addRuns(bytes: FileBytes, { moof, traf, id, usual }: Fragment, chunks: Chunks): void {
  const parts = boxes(bytes, traf, MAX_INNER);
  const tfhd = parts.find(({ type }) => type === 'tfhd');
  const head = tfhd && new Fields(viewOf(bytes, tfhd.from, tfhd.to));
  if (!head || head.flags === undefined || head.next() !== id) return;
  const base = head.flags & HAS_BASE ? head.next() * 2 ** 32 + head.next() : moof.from - BOX_BYTES;
  if (head.flags & HAS_DESCRIPTION) head.next();
  if (head.flags & HAS_DURATION) head.next();
  const size = (head.flags & HAS_SIZE && head.next()) || usual;
  let at = base;
  for (const { from, to } of parts.filter(({ type }) => type === 'trun')) {
    const run = new Fields(viewOf(bytes, from, to));
    if (run.flags === undefined) return;
    const count = run.next();
    if (run.flags & HAS_OFFSET) at = base + (run.next() | 0);
    if (run.flags & HAS_FIRST_FLAGS) run.next();
    const length = run.flags & SAMPLE_SIZE ? run.sizes(count) : count * size;
    if (!chunks.add(at, length - (length % chunks.frameBytes))) return;
    at += length;
  }
}

/** Reads the 32-bit numbers after a box's version and flags; beyond its end they are 0. */
class Fields {
  readonly flags: number | undefined;
  readonly #view: DataView;
  #at = 4;

  constructor(view: DataView) {
    this.#view = view;
    this.flags = view.byteLength < 8 ? undefined : view.getUint32(0) & 0xff_ffff;
  }

  next(): number {
    const value = this.#at + 4 <= this.#view.byteLength ? this.#view.getUint32(this.#at) : 0;
    this.#at += 4;
    return value;
  }

  /** Sum of the sample sizes in a run's table. */
  sizes(count: number): number {
    const columns = SAMPLE_FIELDS.filter((flag) => (this.flags ?? 0) & flag);
    const rows = Math.min(count, Math.floor((this.#view.byteLength - this.#at) / (4 * columns.length)));
    const place = this.#at + 4 * columns.indexOf(SAMPLE_SIZE);
    let sum = 0;
    for (let row = 0; row < rows; row++) sum += this.#view.getUint32(place + row * 4 * columns.length);
    return sum;
  }
}
