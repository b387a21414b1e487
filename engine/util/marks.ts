/** Letters with more marks than any writing has. */

/** Marks on one letter that are left together. */
const MOST_MARKS = 256;
const TOO_MANY = new RegExp(`(?<!\\p{M})\\p{M}{${MOST_MARKS + 1}}`, 'u');
const TOGETHER = new RegExp(`\\p{M}{1,${MOST_MARKS}}`, 'gu');

/**
 * A text for normalize(), which sorts the marks of each letter by comparing each with those before it: of a million that takes minutes, of ten million
 * hours. Between too many of them it gets the joiner that Unicode has for this (UAX #15, stream-safe text).
 */
export function withFewMarks(text: string): string {
  if (!TOO_MANY.test(text)) return text;
  return text.replace(TOGETHER, (marks) => (marks.length < MOST_MARKS ? marks : `${marks}\u034f`));
}
