/** A transcript as files. */
import type { TranscriptSegment } from '../../../engine/api.ts';

type Segment = Pick<TranscriptSegment, 'start' | 'end' | 'text'>;

export const FORMATS = ['txt', 'srt', 'vtt', 'json'] as const;
export type Format = (typeof FORMATS)[number];

/** The whole document in one of the formats. */
export function formatTranscript(format: Format, segments: readonly Segment[]): string {
  if (format === 'json')
    return `${JSON.stringify({ segments: segments.map(({ start, end, text }) => ({ start, end, text: text.trim() })) }, null, 1)}\n`;
  if (format === 'txt') return segments.map(({ text }) => `${text.trim()}\n`).join('');
  const cues = segments.map(({ start, end, text }, index) => {
    const mark = format === 'srt' ? ',' : '.';
    const number = format === 'srt' ? `${index + 1}\n` : '';
    return `${number}${timestamp(start, mark)} --> ${timestamp(end, mark)}\n${text.trim()}\n`;
  });
  return (format === 'vtt' ? 'WEBVTT\n\n' : '') + cues.join('\n');
}

/** Seconds as hh:mm:ss,mmm. */
export function timestamp(seconds: number, mark: ',' | '.'): string {
  const ms = Math.max(0, Math.round(seconds * 1000));
  const two = (value: number): string => String(value).padStart(2, '0');
  const whole = Math.floor(ms / 1000);
  return `${two(Math.floor(whole / 3600))}:${two(Math.floor(whole / 60) % 60)}:${two(whole % 60)}${mark}${String(ms % 1000).padStart(3, '0')}`;
}
