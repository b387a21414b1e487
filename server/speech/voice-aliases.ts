/** `--voice-alias`: the table of other names of voices as text. */
import { VOICE_TABLE, parseBlend } from '../../engine/util/voices.ts';
import type { VoiceTable } from '../../engine/util/voices.ts';

/** The table as the flag has it, in items of name=voice, name=voice|voice of another model, name=voice(share)+voice(share), ... */
export const VOICE_ALIAS_LIST: readonly string[] = [...VOICE_TABLE].map(([name, choices]) => `${name}=${choices.join('|')}`);

/** Reads items of the table; undefined when one is none or a name comes twice. */
export function parseVoiceAliases(items: readonly string[]): VoiceTable | undefined {
  const pairs = items.map((item) => item.split('=').map((part) => part.trim()));
  const table = new Map(pairs.map(([name = '', choices = '']) => [name, choices.split('|').map((choice) => choice.trim())] as const));
  const isRight = pairs.every(([name]) => name !== '') && pairs.every((pair) => pair.length === 2);
  const isSpeakable = [...table.values()].flat().every((choice) => parseBlend(choice) !== undefined);
  return isRight && isSpeakable && table.size === pairs.length ? table : undefined;
}
