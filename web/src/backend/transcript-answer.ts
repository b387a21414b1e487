/** The body that a server answers a transcription with. */

export interface TranscriptAnswer {
  readonly text: string;
  readonly language?: unknown;
  readonly segments?: unknown;
}

interface Segment {
  readonly start: number;
  readonly end: number;
  readonly text: string;
}

/**
 * The segments of an answer to a recording of `duration` seconds. Servers without times have none, which then is one segment; some leave out a time or
 * send one that is none.
 */
export function segmentsOf({ text, segments }: TranscriptAnswer, duration: number): readonly Segment[] {
  const listed = (Array.isArray(segments) ? segments : []) as readonly (Partial<Record<keyof Segment, unknown>> | null)[];
  const found = listed.flatMap((segment) => {
    if (typeof segment?.text !== 'string') return [];
    const start = timeOf(segment.start) ?? 0;
    return [{ start, end: Math.max(start, timeOf(segment.end) ?? duration), text: segment.text }];
  });
  return found.length > 0 || text.trim() === '' ? found : [{ start: 0, end: duration, text }];
}

/** A time in seconds; undefined where there is none. */
function timeOf(found: unknown): number | undefined {
  const seconds = typeof found === 'string' ? Number.parseFloat(found) : found;
  return typeof seconds === 'number' && Number.isFinite(seconds) ? Math.max(0, seconds) : undefined;
}
