/** The voices of the speech interface, in its order; the loaded model's own list comes before this one. */
export const VOICES: readonly string[] = [
  ...[1, 2, 3, 4, 5, 6].map((n) => `aus-female-${n}`),
  ...[1, 2, 3, 4, 5, 6, 7].map((n) => `aus-male-${n}`),
  'charter',
  'gaius',
  '_gantry',
  'nona',
  'oni',
  'vulcan',
];

/** A model's voices: those above first and in their order, then its own. */
export function inOrder(voices: readonly string[]): readonly string[] {
  const rank = (voice: string): number => (VOICES.includes(voice) ? VOICES.indexOf(voice) : VOICES.length);
  return [...voices].sort((a, b) => rank(a) - rank(b));
}
