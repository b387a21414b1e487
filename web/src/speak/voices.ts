/** Which voices are offered, and which one speaks. */
import { OPENAI_VOICES, VOICE_TABLE, parseBlend, resolveVoices } from '../../../engine/util/voices.ts';

/** The names of the speech interface, in its order: every Parley server speaks them, whatever its model. */
export const INTERFACE_VOICES: readonly string[] = [...VOICE_TABLE.keys()].filter((name) => !OPENAI_VOICES.has(name));

/** A model's voices: those of the interface first and in its order, then its own. */
export function inOrder(voices: readonly string[]): readonly string[] {
  const rank = (voice: string): number => (INTERFACE_VOICES.includes(voice) ? INTERFACE_VOICES.indexOf(voice) : INTERFACE_VOICES.length);
  return [...voices].sort((a, b) => rank(a) - rank(b));
}

/**
 * The voice that speaks: of those that were chosen, the model's own choice first, one that it has; else what stands for the last of them, else its first.
 * Where its voices are not known yet, the first that was chosen.
 */
export function voiceFor(voices: readonly string[] | undefined, chosen: readonly string[]): string {
  const wanted = chosen.at(-1)!;
  if (!voices || voices.length === 0) return chosen[0]!;
  const known = chosen.find((voice) => voices.includes(voice));
  if (known !== undefined) return known;
  const stand = resolveVoices(VOICE_TABLE, voices).get(wanted);
  const [loudest] = [...(parseBlend(stand ?? '') ?? [])].sort(([, a], [, b]) => b - a);
  return loudest?.[0] ?? inOrder(voices)[0]!;
}
