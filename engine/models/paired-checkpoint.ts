/** A checkpoint whose rotary embedding pairs adjacent channels, read with the channels of a pair half a head apart. */
import type { RopeConfig } from '../ops/rope.ts';
import { ceilDiv, product, sizeOf } from '../util/math.ts';
import type { Range } from '../util/math.ts';
import type { Checkpoint } from '../weights/checkpoint.ts';

/** Heads of the projections whose rows, and biases, are rotated, and how many of a head's rows are, its first ones; default all. */
interface Heads {
  readonly heads: number;
  readonly kvHeads: number;
  readonly rope: Pick<RopeConfig, 'rotary'>;
}

const ROTATED = /\.self_attn\.(q|k|qkv)_proj\.(weight|bias)$/;

/**
 * The checkpoint with rows 2d and 2d + 1 of each query and key head, of the first R that are rotated, as rows d and d + R/2, which is how
 * checkpoints of other families pair channels. Scores do not depend on the order of a head's channels.
 */
export function pairedCheckpoint(checkpoint: Checkpoint, { heads, kvHeads, rope: { rotary } }: Heads): Checkpoint {
  // Heads that a projection has, and those that are rotated, which come first.
  const counts: Readonly<Record<string, readonly [all: number, turned: number]>> = {
    q: [heads, heads],
    k: [kvHeads, kvHeads],
    qkv: [heads + 2 * kvHeads, heads + kvHeads],
  };
  return withPairs(checkpoint, (name) => {
    const [all, turned] = counts[ROTATED.exec(name)?.[1] ?? ''] ?? [];
    return all === undefined || turned === undefined ? undefined : { heads: all, turned, first: 0, rotary };
  });
}

/** The heads that a tensor's rows are, and which of them are rotated, in which of their rows. */
export interface PairedRows {
  readonly heads: number;
  /** Heads that are rotated, which come first. */
  readonly turned: number;
  /** A head's first row that is rotated, and the number of these; default the whole head. */
  readonly first: number;
  readonly rotary: number | undefined;
}

/** The same of tensors that `pairsOf` has rows of by their name. */
export function withPairs(checkpoint: Checkpoint, pairsOf: (name: string) => PairedRows | undefined): Checkpoint {
  /** Rows of a head and values of a row; undefined for tensors that are not rotated. */
  const layoutOf = (name: string): Layout | undefined => {
    const pairs = pairsOf(name);
    if (!pairs) return undefined;
    const { heads: all, turned, first, rotary } = pairs;
    const [rows = 0, ...rest] = checkpoint.tensor(name)?.shape ?? [];
    const headRows = rows / all;
    // The loader refuses tensors of another shape.
    return headRows % 2 !== 0 ? undefined : { headRows, first, rotary: rotary ?? headRows, turned, width: product(rest) };
  };
  const stored = (name: string, range: Range, into?: Uint8Array): Promise<Uint8Array> | undefined => {
    const layout = layoutOf(name);
    if (!layout) return checkpoint.stored!(name, range, into);
    return checkpoint.stored!(name, wholeHeads(layout, range))?.then((found) => inOrder(found, layout, range));
  };
  const blocks = async (name: string, rows: Range, into?: Uint8Array): Promise<Uint8Array> => {
    const layout = layoutOf(name);
    if (!layout) return checkpoint.blocks!(name, rows, into);
    const ofRows = { ...layout, width: 1 };
    return inOrder(await checkpoint.blocks!(name, wholeHeads(ofRows, rows)), ofRows, rows);
  };
  return {
    names: () => checkpoint.names(),
    tensor: (name) => checkpoint.tensor(name),
    async read(name, elements) {
      const layout = layoutOf(name);
      if (!layout) return checkpoint.read(name, elements);
      const range = elements ?? { from: 0, to: product(checkpoint.tensor(name)!.shape) };
      return inOrder(await checkpoint.read(name, wholeHeads(layout, range)), layout, range);
    },
    ...(checkpoint.blocks && { blocks }),
    ...(checkpoint.stored && { stored }),
    // Random rows are as good in any order.
    ...(checkpoint.random && { random: (name: string) => checkpoint.random!(name) }),
    readIds: (name) => checkpoint.readIds(name),
    close: () => checkpoint.close(),
  };
}

/** Rows of a head, those that are rotated, the number of heads that are, and elements of a row. */
interface Layout {
  readonly headRows: number;
  readonly first: number;
  readonly rotary: number;
  readonly turned: number;
  readonly width: number;
}

/** The heads that elements of a tensor are in, as a range of elements. */
function wholeHeads({ headRows, width }: Layout, { from, to }: Range): Range {
  const head = headRows * width;
  return { from: Math.floor(from / head) * head, to: ceilDiv(to, head) * head };
}

/** Elements `range` of a tensor with the rows of each head in order. `found` holds the heads that they are in; an element may be several bytes. */
function inOrder<T extends Float32Array | Uint8Array>(found: T, layout: Layout, range: Range): T {
  const { headRows, first: firstTurned, rotary, turned, width } = layout;
  const heads = wholeHeads(layout, range);
  const first = heads.from / width;
  const unit = sizeOf(heads) === 0 ? 1 : found.length / sizeOf(heads);
  const ordered = found.slice() as T;
  for (let row = 0; row < sizeOf(heads) / width; row++) {
    const d = (row % headRows) - firstTurned;
    if (d < 0 || d >= rotary || first + row >= turned * headRows) continue;
    const from = row - d + (d < rotary / 2 ? 2 * d : 2 * d - rotary + 1);
    ordered.set(found.subarray(from * width * unit, (from + 1) * width * unit), row * width * unit);
  }
  return ordered.subarray((range.from - heads.from) * unit, (range.to - heads.from) * unit) as T;
}
