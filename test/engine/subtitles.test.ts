import { expect, test } from 'vitest';
import { toSubtitles } from '../../engine/util/subtitles.ts';

test('subtitles keep a cue on one line and longer than nothing, and WebVTT escapes what it would read as marks', () => {
  const cues = [
    { start: 0, end: 0, text: ' one\n\ntwo ' },
    { start: 3599.9999, end: 3601.5, text: 'a <b> & c --> d' },
  ];
  expect(toSubtitles('srt', cues)).toBe(
    '1\n00:00:00,000 --> 00:00:00,001\none two\n\n2\n01:00:00,000 --> 01:00:01,500\na <b> & c --> d\n\n',
  );
  expect(toSubtitles('vtt', cues)).toBe(
    'WEBVTT\n\n00:00:00.000 --> 00:00:00.001\none two\n\n01:00:00.000 --> 01:00:01.500\na &lt;b&gt; &amp; c --&gt; d\n\n',
  );
  expect(toSubtitles('srt', [])).toBe('');
});
