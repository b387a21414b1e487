import { describe, expect, test } from 'vitest';
import { closedTokens, toSegments } from '../../engine/tasks/transcript.ts';

const TIMES = { begin: 1000, step: 0.02 };
const decode = (tokens: readonly number[]): string => tokens.map((token) => ` w${token}`).join('');
const window = (tokens: number[]): Parameters<typeof toSegments>[0] => ({
  tokens,
  start: 60,
  seconds: 10,
  seek: 6000,
  temperature: 0,
  avgLogprob: -0.5,
  compressionRatio: 1.2,
  noSpeechProb: 0.1,
});

describe('toSegments', () => {
  test('makes one segment of a window without timestamps', () => {
    expect(toSegments(window([1, 2]), TIMES, 3, decode)).toEqual([
      {
        id: 3,
        start: 60,
        end: 70,
        text: ' w1 w2',
        tokens: [1, 2],
        seek: 6000,
        temperature: 0,
        avgLogprob: -0.5,
        compressionRatio: 1.2,
        noSpeechProb: 0.1,
      },
    ]);
  });

  test('cuts at pairs of timestamps and offsets them by the window', () => {
    const segments = toSegments(window([1005, 1, 2, 1100, 1110, 3, 1200]), TIMES, 0, decode);
    expect(segments.map(({ id, start, end, text }) => [id, +start.toFixed(2), +end.toFixed(2), text])).toEqual([
      [0, 60.1, 62, ' w1 w2'],
      [1, 62.2, 64, ' w3'],
    ]);
  });

  test('ends text that is cut off with the window, and keeps times inside and in order', () => {
    const segments = toSegments(window([1400, 1, 1300, 1300, 2, 1900, 1900, 3]), TIMES, 0, decode);
    expect(segments.map(({ start, end }) => [start, end])).toEqual([[68, 68], [68, 70], [70, 70]]); // prettier-ignore
  });

  test('has no segment for a window without text', () => {
    expect(toSegments(window([]), TIMES, 0, decode)).toEqual([]);
    expect(toSegments(window([1000, 1100]), TIMES, 0, decode)).toEqual([]);
  });
});

describe('closedTokens', () => {
  const heard = (tokens: number[]) => closedTokens(tokens, 10, TIMES);

  test('takes a window whole that ends with a single timestamp, or has no pair of them', () => {
    for (const tokens of [[], [1, 2], [1000, 1, 1200], [1000, 1, 1200, 1200, 2, 1300], [1000, 1, 2]]) {
      expect(heard(tokens)).toEqual({ tokens, rest: undefined });
    }
  });

  test('goes on where the last closed segment ends when another is opened and not closed', () => {
    expect(heard([1000, 1, 1200, 1200])).toEqual({ tokens: [1000, 1, 1200], rest: 4 });
    expect(heard([1000, 1, 1200, 1210])).toEqual({ tokens: [1000, 1, 1200], rest: 4 });
    expect(heard([1000, 1, 1200, 1200, 2, 1300, 1300, 3, 4])).toEqual({ tokens: [1000, 1, 1200, 1200, 2, 1300], rest: 6 });
  });

  test('keeps what was written of a rest that is too short to hear again, and never stands still', () => {
    const tokens = [1000, 1, 1495, 1495, 2];
    expect(heard(tokens)).toEqual({ tokens, rest: undefined });
    expect(heard([1000, 1000, 1])).toEqual({ tokens: [1000, 1000, 1], rest: undefined });
  });
});
