/** Transcripts as files. */
import type { TranscriptSegment } from '../../../engine/api.ts';
import { toSubtitles } from '../../../engine/util/subtitles.ts';

type Segment = Pick<TranscriptSegment, 'start' | 'end' | 'text'>;

export const FORMATS = ['txt', 'srt', 'vtt', 'json'] as const;
export type Format = (typeof FORMATS)[number];

/** Formats a transcript as a file's text. */
export function formatTranscript(format: Format, segments: readonly Segment[]): string {
  if (format === 'json')
    return `${JSON.stringify({ segments: segments.map(({ start, end, text }) => ({ start, end, text: text.trim() })) }, null, 1)}\n`;
  if (format === 'txt') return segments.map(({ text }) => `${text.trim()}\n`).join('');
  return toSubtitles(format, segments);
}
