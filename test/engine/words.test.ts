import { expect, test } from 'vitest';
import { warpedStarts } from '../../engine/tasks/alignment.ts';
import { wordsOf } from '../../engine/text/words.ts';
import { createRng } from '../../engine/util/rng.ts';

/** Tokens are pieces of text; those that begin with '%' are bytes. */
function words(pieces: readonly string[], language = 'en'): [string, number][] {
  const bytes = (piece: string): number[] =>
    piece.startsWith('%') ? [parseInt(piece.slice(1), 16)] : [...new TextEncoder().encode(piece)];
  const decode = (tokens: readonly number[]): string => new TextDecoder().decode(Uint8Array.from(tokens.flatMap((i) => bytes(pieces[i]!))));
  const found = wordsOf([...pieces.keys()], decode, language);
  // Together they are all of the tokens.
  expect(found.map(({ first }) => first)).toEqual(found.map((_, i) => found.slice(0, i).reduce((sum, { count }) => sum + count, 0)));
  return found.map(({ text, count }) => [text, count]);
}

test('words begin at spaces', () => {
  expect(words([])).toEqual([]);
  expect(words(['Hel', 'lo', ' th', 'er', 'e', ' you'])).toEqual([['Hello', 2], [' there', 3], [' you', 1]]); // prettier-ignore
});

test('punctuation goes to its word', () => {
  expect(words([' He', ' said', ',', ' "', 'No', '."'])).toEqual([[' He', 1], [' said,', 2], [' "No."', 3]]); // prettier-ignore
  expect(words([' (', 'a', ')', ' b', '?', '!'])).toEqual([[' (a)', 3], [' b?!', 3]]); // prettier-ignore
  expect(words([' it', "'s", ' 5', ' %'])).toEqual([[" it's", 2], [' 5', 1], [' %', 1]]); // prettier-ignore
});

test('each character is a word where there are no spaces', () => {
  expect(words(['你好', '，', '世', '界'], 'zh')).toEqual([['你好，', 2], ['世', 1], ['界', 1]]); // prettier-ignore
  expect(words(['你好', '，', '世', '界'], 'de')).toEqual([['你好，世界', 4]]);
});

test('a character that takes several tokens is not cut, and one that never gets whole stays', () => {
  expect(words([' caf', '%c3', '%a9', ' x'])).toEqual([[' café', 3], [' x', 1]]); // prettier-ignore
  expect(words(['%e4', '%bd', '%a0', '%e5', '%a5', '%bd'], 'zh')).toEqual([['你', 3], ['好', 3]]); // prettier-ignore
  expect(words([' a', '%c3', ' b'])).toEqual([[' a\ufffd', 2], [' b', 1]]); // prettier-ignore
  expect(words([' a', '%e4', '%bd'])).toEqual([[' a\ufffd\ufffd', 3]]);
});

/** Starts of the rows on the best way, by trying all ways. */
function tried(matrix: Float32Array, rows: number, columns: number): number[] {
  let best = { sum: -Infinity, starts: [] as number[] };
  const go = (t: number, s: number, sum: number, starts: number[]): void => {
    const here = sum + matrix[t * columns + s]!;
    if (t === rows - 1 && s === columns - 1 && here > best.sum) best = { sum: here, starts };
    if (s < columns - 1) go(t, s + 1, here, starts);
    if (t < rows - 1) go(t + 1, s, here, [...starts, s]);
    if (t < rows - 1 && s < columns - 1) go(t + 1, s + 1, here, [...starts, s + 1]);
  };
  go(0, 0, 0, [0]);
  return best.starts;
}

test('rows begin where the best way through the matrix enters them', () => {
  const rng = createRng(3);
  for (const [rows, columns] of [
    [1, 1],
    [1, 5],
    [5, 1],
    [4, 4],
    [3, 7],
    [6, 5],
  ] as const) {
    // prettier-ignore
    for (let i = 0; i < 5; i++) {
      const matrix = Float32Array.from({ length: rows * columns }, () => rng.normal());
      expect([...warpedStarts(matrix, rows, columns)]).toEqual(tried(matrix, rows, columns));
    }
  }
});
