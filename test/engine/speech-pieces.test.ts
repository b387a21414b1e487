import { describe, expect, test } from 'vitest';
import { collect } from '../support/collect.ts';
import { SpeechCutter, shownText } from '../../engine/tasks/speech-pieces.ts';
import type { SpeechPiece } from '../../engine/tasks/speech-pieces.ts';
import { readMarks } from '../../engine/text/speech-marks.ts';
import type { SpeechMarks } from '../../engine/text/speech-marks.ts';
import type { SpeechLanguage } from '../../engine/util/speech-languages.ts';

const rules = { given: [], replace: [] };
const vocab = new Map(Array.from('abcdefghijklmnopqrstuvwxyzəˈ', (symbol, id) => [symbol, id] as const));

/** Every letter is a phoneme. */
const phonemizer = {
  marks: (text: string, language: SpeechLanguage) => readMarks(text, { language, rules, vocab }),
  ids: async (text: string, _: SpeechLanguage = 'en-us', marks: SpeechMarks = new Map()) => {
    const letters = text.replace(/[\u{100000}-\u{10ffff}]/gu, (mark) => marks.get(mark)!.phonemes!).match(/[a-zəˈ]/gi) ?? [];
    return { phonemes: letters.join(''), ids: letters.map((letter) => letter.charCodeAt(0)), speakable: letters.length > 0 };
  },
};
const NEVER = new AbortController().signal;

/** What a text is cut into, as text and the pause behind it. */
async function cut(
  text: string,
  { maxIds = 1000, maxPhonemes = 1000, speed = 1, signal = NEVER } = {},
): Promise<(readonly [string, string])[]> {
  const cutter = new SpeechCutter({ phonemizer, maxIds, maxPhonemes });
  const pieces: SpeechPiece[] = [];
  for await (const piece of await cutter.pieces(text, { speed, language: 'en-us' }, signal)) pieces.push(piece);
  return pieces.map(({ text: own, pause }) => [own, pause] as const);
}

test('a sentence is a piece, with the pause of what it ends; what has nothing to say is left out', async () => {
  expect(await cut('One. Two!\n\n...\n\nThree')).toEqual([
    ['One.', 'sentence'],
    ['Two!', 'paragraph'],
    ['Three.', 'paragraph'],
  ]);
});

test('the first sentence alone is cut behind its first clause, if it is long', async () => {
  const long = 'When the evening came at last, the lamps along the harbour were lit one after the other.';
  expect(await cut(`${long} ${long}`)).toEqual([
    ['When the evening came at last,', 'clause'],
    ['the lamps along the harbour were lit one after the other.', 'sentence'],
    [long, 'paragraph'],
  ]);
});

test('what has more phonemes than the model takes is cut until it fits, and keeps its pause at the end', async () => {
  expect(await cut('abcd efgh ijkl mnop.', { maxIds: 8 })).toEqual([
    ['abcd efgh', 'clause'],
    ['ijkl mnop.', 'paragraph'],
  ]);
  const pieces = await cut(`${'x'.repeat(400)}.`);
  expect(pieces.map(([text]) => text).join('')).toBe(`${'x'.repeat(400)}.`);
  expect(Math.max(...pieces.map(([text]) => text.length))).toBeLessThanOrEqual(160);
});

describe('a text with more phonemes than allowed', () => {
  const text = 'abcdefghij. '.repeat(4);

  test('is refused before it has a piece, and sooner where it is read slowly', async () => {
    expect(await cut(text, { maxPhonemes: 40 })).toHaveLength(4);
    await expect(cut(text, { maxPhonemes: 39 })).rejects.toMatchObject({
      code: 'invalid_request',
      param: 'text',
      message: 'the text has 40 phonemes or more; at most 39 are spoken in one request',
    });
    await expect(cut(text, { maxPhonemes: 60, speed: 0.5 })).rejects.toThrow('at most 30 are spoken at speed 0.5 in one request');
    expect(await cut(text, { maxPhonemes: 40, speed: 2 })).toHaveLength(4);
  });

  test('is counted no further when its caller went away', async () => {
    await expect(cut(text, { maxPhonemes: 40, signal: AbortSignal.abort() })).rejects.toMatchObject({ code: 'aborted' });
  });
});

test('a piece is halved, and a single character is not', async () => {
  const cutter = new SpeechCutter({ phonemizer, maxIds: 100, maxPhonemes: 100 });
  const halves: SpeechPiece[] = [];
  for await (const half of cutter.halve({ text: 'one, two', marks: new Map(), ids: [], pause: 'sentence' }, 'en-us')!) halves.push(half);
  expect(halves.map(({ text, pause }) => [text, pause])).toEqual([
    ['one,', 'clause'],
    ['two', 'sentence'],
  ]);
  expect(cutter.halve({ text: 'a', marks: new Map(), ids: [], pause: 'sentence' }, 'en-us')).toBeUndefined();
});

describe('marks', () => {
  async function pieces(text: string, maxIds = 1000): Promise<SpeechPiece[]> {
    const cutter = new SpeechCutter({ phonemizer, maxIds, maxPhonemes: 10_000 });
    return collect(await cutter.pieces(text, { speed: 1, language: 'en-us' }, NEVER));
  }

  test('a pause is before the piece behind it, and cuts what it interrupts; several are one', async () => {
    const said = await pieces('[pause:1s] One. Two [pause:1.5s][pause:500ms], three! [Pause:250ms] ');
    expect(said.map((piece) => [shownText(piece), piece.pause, piece.silence])).toEqual([
      ['One.', 'sentence', 1],
      ['Two', 'given', undefined],
      [', three!', 'given', 2],
      [', three!', 'given', 0.25],
    ]);
    expect(said.at(-1)!.ids).toEqual([]);
  });

  test('a text of pauses alone has no piece', async () => {
    expect(await pieces('[pause:1s]\n\n... [pause:2s]')).toEqual([]);
  });

  test('a marked word is never cut, and counts as its phonemes', async () => {
    const word = '[hello](/əabˈcdefhi/)';
    const said = await pieces(`${Array(6).fill(word).join(' ')}.`, 20);
    expect(said.map(shownText)).toEqual(['hello', 'hello hello', 'hello', 'hello hello.']);
    expect(said.map(({ ids }) => ids.length)).toEqual([10, 20, 10, 20]);
    // Without a space between them too.
    expect((await pieces(Array(6).fill(word).join(''), 20)).map(({ ids }) => ids.length)).toEqual([10, 20, 20, 10]);
  });
});
