/** How far times of a transcript are from what test/tools/dump_whisper_words.py wrote. */
import type { TranscriptSegment } from '../../engine/api.ts';

export interface GoldenTimes {
  readonly segments: readonly { readonly start: number; readonly end: number; readonly text: string }[];
  readonly words: readonly (readonly [text: string, start: number, end: number])[];
}

/** Largest distances in seconds; Infinity where the words or segments are others, which `texts` says. */
export function wordsApart(
  segments: readonly TranscriptSegment[],
  golden: GoldenTimes,
): { readonly words: number; readonly segments: number; readonly texts: string; readonly beyond: readonly string[] } {
  const words = segments.flatMap((segment) => segment.words ?? []);
  const [found, wanted] = [words.map(({ text }) => text), golden.words.map(([text]) => text)];
  const texts = found.join('|') === wanted.join('|') ? 'equal' : `${found.join('|')} instead of ${wanted.join('|')}`;
  if (texts !== 'equal' || segments.length !== golden.segments.length) return { words: Infinity, segments: Infinity, texts, beyond: [] };
  const apart = words.map(({ start, end }, i) => Math.max(Math.abs(start - golden.words[i]![1]), Math.abs(end - golden.words[i]![2])));
  const ofSegments = segments.map(({ start, end }, i) => {
    const one = golden.segments[i]!;
    return Math.max(Math.abs(start - one.start), Math.abs(end - one.end));
  });
  // The golden times are rounded to milliseconds.
  const rounded = (distances: readonly number[]): number => Math.round(Math.max(...distances, 0) * 1000) / 1000;
  const beyond = words.flatMap(({ text, start, end }, i) => (apart[i]! > 0.04 ? [`${text} ${start.toFixed(2)}-${end.toFixed(2)} not ${golden.words[i]![1]}-${golden.words[i]![2]}`] : [])); // prettier-ignore
  return { words: rounded(apart), segments: rounded(ofSegments), texts, beyond };
}
