/** OpenAI's voice names, which unmodified clients send, and the bundled voices that answer to them; `--voice-alias` replaces the table. */

/**
 * Chosen by what OpenAI's voices sound like (none is imitated): women's names to the female voices, onyx to the lowest, the lively ones to the
 * higher. Mean pitch in Hz; see models/parley-speech/README.md.
 */
export const VOICE_ALIASES: ReadonlyMap<string, string> = new Map([
  ['alloy', 'aus-female-4'], // 151, between men and women
  ['ash', 'aus-male-6'], // 117
  ['ballad', 'aus-male-7'], // 126
  ['cedar', 'charter'], // 110
  ['coral', 'aus-female-2'], // 178
  ['echo', 'aus-male-3'], // 109
  ['fable', 'aus-male-5'], // 147
  ['marin', 'nona'], // 165
  ['nova', 'aus-female-6'], // 200
  ['onyx', 'vulcan'], // 88
  ['sage', 'aus-female-5'], // 158
  ['shimmer', 'aus-female-1'], // 175
  ['verse', 'aus-male-1'], // 102
]);

/** The table as the flag has it, in items of name=voice. */
export const VOICE_ALIAS_LIST: readonly string[] = [...VOICE_ALIASES].map((pair) => pair.join('='));

/** Reads items of `name=voice`; undefined when one is none or a name comes twice. */
export function parseVoiceAliases(items: readonly string[]): ReadonlyMap<string, string> | undefined {
  const pairs = items.map((item) => item.split('=').map((part) => part.trim()));
  const aliases = new Map(pairs.map(([name = '', voice = '']) => [name, voice]));
  const isRight = pairs.every((pair) => pair.length === 2 && pair.every((part) => part !== ''));
  return isRight && aliases.size === pairs.length ? aliases : undefined;
}
