/** Protection against letters with absurdly many combining marks. */

/** Most consecutive combining marks that are left as they are. */
const MOST_MARKS = 256;
const TOO_MANY = new RegExp(`(?<!\\p{M})\\p{M}{${MOST_MARKS + 1}}`, 'u');
const TOGETHER = new RegExp(`\\p{M}{1,${MOST_MARKS}}`, 'gu');

/**
 * Makes a text safe for normalize(), which sorts the combining marks of each letter in quadratic time: a million of them take minutes, ten million hours. Longer runs of
 * marks are broken up by U+034F, the combining grapheme joiner, as in Unicode's stream-safe text format (UAX #15).
 */
export function withFewMarks(text: string): string {
  if (!TOO_MANY.test(text)) return text;
  return text.replace(TOGETHER, (marks) => (marks.length < MOST_MARKS ? marks : `${marks}\u034f`));
}
