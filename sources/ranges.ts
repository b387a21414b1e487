/** Byte ranges of a file that are present: ascending ranges [from, to) that do not touch. Pure. */

/** A range of bytes, [from, to). */
export type Range = readonly [from: number, to: number];

/** Adds a range, merging those that touch. */
export function addRange(ranges: readonly Range[], [from, to]: Range): Range[] {
  if (from >= to) return [...ranges];
  const before = ranges.filter(([, end]) => end < from);
  const after = ranges.filter(([start]) => start > to);
  const touching = ranges.slice(before.length, ranges.length - after.length);
  const merged: Range = [Math.min(from, touching[0]?.[0] ?? from), Math.max(to, touching.at(-1)?.[1] ?? to)];
  return [...before, merged, ...after];
}

/** Number of bytes in all ranges. */
export const rangeBytes = (ranges: readonly Range[]): number => ranges.reduce((sum, [from, to]) => sum + to - from, 0);

/** Ranges that are missing of `size` bytes, in pieces of at most `pieceBytes`. */
export function missingPieces(ranges: readonly Range[], size: number, pieceBytes: number): Range[] {
  const pieces: Range[] = [];
  let at = 0;
  for (const [from, to] of [...ranges, [size, size] as const]) {
    for (; at < from; at = Math.min(from, at + pieceBytes)) pieces.push([at, Math.min(from, at + pieceBytes)]);
    at = to;
  }
  return pieces;
}

/** Parses ranges that were stored as JSON; undefined if they are invalid for a file of `size` bytes. */
export function readRanges(value: unknown, size: number): Range[] | undefined {
  if (!Array.isArray(value)) return undefined;
  let end = -1;
  for (const range of value as unknown[]) {
    if (!Array.isArray(range) || range.length !== 2 || !range.every((n) => Number.isSafeInteger(n))) return undefined;
    const [from, to] = range as [number, number];
    if (from <= end || to <= from || to > size) return undefined;
    end = to;
  }
  return value as Range[];
}
