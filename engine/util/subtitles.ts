/** A transcript's segments as subtitle files. */

/** A subtitle; times are seconds from the start of the audio. */
export interface Cue {
  readonly start: number;
  readonly end: number;
  readonly text: string;
}

/** Writes a SubRip or WebVTT file. A cue's text becomes one line, since an empty line would end it, and lasts at least a millisecond, since players skip empty cues. */
export function toSubtitles(format: 'srt' | 'vtt', cues: readonly Cue[]): string {
  const mark = format === 'srt' ? ',' : '.';
  const blocks = cues.map(({ start, end, text }, index) => {
    const line = text.trim().replace(/\s*[\r\n]+\s*/g, ' ');
    const times = `${clockTime(start, mark)} --> ${clockTime(Math.max(end, start + 0.001), mark)}`;
    return `${format === 'srt' ? `${index + 1}\n` : ''}${times}\n${format === 'vtt' ? escapeVtt(line) : line}\n\n`;
  });
  return (format === 'vtt' ? 'WEBVTT\n\n' : '') + blocks.join('');
}

/** Formats seconds as hh:mm:ss,mmm; `mark` is the decimal mark. */
export function clockTime(seconds: number, mark: ',' | '.'): string {
  const ms = Math.max(0, Math.round(seconds * 1000));
  const two = (value: number): string => String(value).padStart(2, '0');
  const whole = Math.floor(ms / 1000);
  return `${two(Math.floor(whole / 3600))}:${two(Math.floor(whole / 60) % 60)}:${two(whole % 60)}${mark}${String(ms % 1000).padStart(3, '0')}`;
}

/** In WebVTT `<` begins a tag, `&` a character, and `-->` a cue's times. */
const escapeVtt = (text: string): string => text.replace(/&/g, '&amp;').replace(/</g, '&lt;').replace(/>/g, '&gt;');
