/** Audio of which only some stretches are heard: they follow one another without what lies between, and every place is known in the whole. */
import type { SampleSource } from './sample-source.ts';
import type { Stretch } from './speech-segments.ts';

/** What of a sound is heard, as a sound of its own. */
export interface KeptSound extends SampleSource {
  /**
   * Where a place lies in the whole, in samples (fractions too). At a seam the end of what was before and the start of what follows are two places: `edge`
   * says which is meant.
   */
  place(at: number, edge: 'start' | 'end'): number;
}

/** All of a sound. */
export function wholeSound(source: SampleSource): KeptSound {
  return { length: source.length, read: (from, to) => source.read(from, to), close: () => source.close(), place: (at) => at };
}

/** The stretches of a sound, which are in order and do not overlap. */
export function keptSound(source: SampleSource, stretches: readonly Stretch[]): KeptSound {
  const parts: { readonly at: number; readonly from: number; readonly length: number }[] = [];
  let length = 0;
  for (const { from, to } of stretches) {
    const last = parts.at(-1);
    // Those that touch are one.
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
    return pieces.length === 1 ? pieces[0]! : joined(pieces);
  };
  const place = (at: number, edge: 'start' | 'end'): number => {
    const part =
      edge === 'start' ? parts.findLast((one) => one.at <= at) : (parts.find((one) => at <= one.at + one.length) ?? parts.at(-1));
    return part ? at + part.from - part.at : at;
  };
  return { length, read, close: () => source.close(), place };
}

function joined(pieces: readonly Float32Array[]): Float32Array {
  const out = new Float32Array(pieces.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const piece of pieces) {
    out.set(piece, at);
    at += piece.length;
  }
  return out;
}
