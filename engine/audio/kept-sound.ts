/** Reduces audio to some of its stretches, which follow one another without the gaps. Every position can be mapped back to the original. */
import { concatenated } from '../util/math.ts';
import type { SampleSource } from './sample-source.ts';
import type { Stretch } from './speech-segments.ts';

/** Beginning and end of something, in samples; fractions are allowed. */
export interface Span {
  readonly start: number;
  readonly end: number;
}

/** The kept stretches of a sound, joined to a sound of their own. */
export interface KeptSound extends SampleSource {
  /** Position of a sample in the original; at a seam, the position after the gap. */
  place(at: number): number;
  /**
   * Position of a span in the original. A span that crosses a seam but does not reach speech on the other side is cut at the seam. An `undivided` span, such as a
   * word, is moved to the side of the seam that has its middle.
   */
  span(span: Span, undivided?: boolean): Span;
}

/** Numbers of samples without speech that are kept before and after speech. */
export interface Padding {
  readonly before: number;
  readonly after: number;
}

/** A kept stretch: where it begins in the reduced sound (`at`) and in the original (`from`). */
interface Part {
  readonly at: number;
  readonly from: number;
  readonly length: number;
}

/** A whole sound, without gaps. */
export function wholeSound(source: SampleSource): KeptSound {
  const { length } = source;
  return { length, read: (from, to) => source.read(from, to), close: () => source.close(), place: (at) => at, span: (span) => span };
}

/** Reduces a sound to stretches, which must be in order and must not overlap. */
export function keptSound(source: SampleSource, stretches: readonly Stretch[], padding: Padding): KeptSound {
  const parts: Part[] = [];
  let length = 0;
  for (const { from, to } of stretches) {
    const last = parts.at(-1);
    // Stretches that touch are joined.
    if (last && last.from + last.length === from) parts[parts.length - 1] = { ...last, length: last.length + to - from };
    else parts.push({ at: length, from, length: to - from });
    length += to - from;
  }
  const read = async (from: number, to: number): Promise<Float32Array> => {
    const wanted = parts.filter((part) => part.at < to && part.at + part.length > from);
    const pieces: Float32Array[] = [];
    for (const part of wanted) {
      const shift = part.from - part.at;
      pieces.push(await source.read(Math.max(from, part.at) + shift, Math.min(to, part.at + part.length) + shift));
    }
    return pieces.length === 1 ? pieces[0]! : concatenated(pieces);
  };
  const place = (at: number): number => {
    const part = parts.findLast((one) => one.at <= at);
    return part ? at + part.from - part.at : at;
  };
  const span = (heard: Span, undivided = false): Span => spanOf(parts, padding, heard, undivided);
  return { length, read, close: () => source.close(), place, span };
}

function spanOf(parts: readonly Part[], { before, after }: Padding, { start, end }: Span, undivided: boolean): Span {
  const endOf = ({ at, length }: Part): number => at + length;
  const holding = (place: number): number => parts.findLastIndex(({ at }) => at <= place);
  let first = holding(start);
  if (first < 0) return { start, end };
  const ends = parts.findIndex((part) => end <= endOf(part));
  let last = Math.max(first, ends < 0 ? parts.length - 1 : ends);
  if (first < last && start >= endOf(parts[first]!) - after) first++;
  if (first < last && end <= parts[last]!.at + before) last--;
  if (undivided) first = last = Math.min(Math.max(holding((start + end) / 2), first), last);
  const within = (place: number, part: Part): number => Math.min(Math.max(place, part.at), endOf(part)) + part.from - part.at;
  return { start: within(start, parts[first]!), end: within(end, parts[last]!) };
}
