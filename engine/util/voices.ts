/** Aliases of voices, which are resolved to voices or blends that the loaded model has. */

/** Shares by voice; they add up to 1. */
export type Blend = ReadonlyMap<string, number>;

/** By alias: voices or blends that it may stand for. The first whose voices the model has is used. */
export type VoiceTable = ReadonlyMap<string, readonly string[]>;

/** OpenAI's names of voices, which the earlier form of a speech request does not know. */
export const OPENAI_VOICES: ReadonlySet<string> = new Set(
  'alloy ash ballad cedar coral echo fable marin nova onyx sage shimmer verse'.split(' '),
);

/**
 * The default aliases: OpenAI's names, which unmodified clients send, and the names of the bundled voices for models without them. Each stands for a bundled voice,
 * or a voice or blend of the published Kokoro. They were chosen by sound (female voices for women's names, the lowest for onyx); no voice is imitated.
 */
export const VOICE_TABLE: VoiceTable = new Map([
  ['alloy', ['aus-female-4', 'af_alloy']],
  ['ash', ['aus-male-6', 'am_puck']],
  ['ballad', ['aus-male-7', 'bm_george']],
  ['cedar', ['charter', 'am_michael']],
  ['coral', ['aus-female-2', 'af_heart']],
  ['echo', ['aus-male-3', 'am_echo']],
  ['fable', ['aus-male-5', 'bm_fable']],
  ['marin', ['nona', 'af_aoede']],
  ['nova', ['aus-female-6', 'af_nova']],
  ['onyx', ['vulcan', 'am_onyx']],
  ['sage', ['aus-female-5', 'af_sarah']],
  ['shimmer', ['aus-female-1', 'af_bella']],
  ['verse', ['aus-male-1', 'am_fenrir']],
  ['aus-female-1', ['bf_emma']],
  ['aus-female-2', ['bf_emma(0.5)+af_bella(0.5)']],
  ['aus-female-3', ['bf_alice']],
  ['aus-female-4', ['bf_lily(0.5)+af_nova(0.5)']],
  ['aus-female-5', ['bf_lily']],
  ['aus-female-6', ['bf_isabella']],
  ['aus-male-1', ['bm_lewis']],
  ['aus-male-2', ['bm_george']],
  ['aus-male-3', ['bm_fable']],
  ['aus-male-4', ['bm_lewis(0.5)+am_onyx(0.5)']],
  ['aus-male-5', ['am_eric(0.7)+bm_george(0.3)']],
  ['aus-male-6', ['bm_daniel']],
  ['aus-male-7', ['bm_george(0.5)+bm_fable(0.5)']],
  ['charter', ['am_michael']],
  ['gaius', ['am_puck']],
  ['_gantry', ['am_fenrir']],
  ['nona', ['af_heart']],
  ['oni', ['af_jessica']],
  ['vulcan', ['am_onyx']],
]);

/** Most voices of a blend: eight names, each of which may stand for as many. Larger blends would all sound alike. */
export const MAX_BLENDED = 64;
const PART = /^([\w-]{1,64})(?:\((\d{1,4}(?:\.\d{1,4})?)\))?$/;

/** Parses `voice` or `voice(share)+voice(share)`, where the default share is 1; undefined if the text is neither. */
export function parseBlend(text: string): Blend | undefined {
  const parts = text.split('+', MAX_BLENDED + 1).map((part) => PART.exec(part.trim()));
  const shares = parts.map((part) => Number(part?.[2] ?? 1));
  const total = shares.reduce((a, b) => a + b, 0);
  if (parts.length > MAX_BLENDED || parts.includes(null) || !(total > 0)) return undefined;
  const blend = new Map(parts.map((part, i) => [part![1]!, shares[i]! / total]));
  return blend.size === parts.length ? blend : undefined;
}

/**
 * Replaces the aliases in a voice or blend by what they stand for, in the form of parseBlend; a text without aliases is returned as it is. Shares are rounded to four
 * decimals, as that form allows.
 */
export function withoutAliases(text: string, aliases: ReadonlyMap<string, string>): string {
  const blend = parseBlend(text);
  if (!blend || ![...blend.keys()].some((part) => aliases.has(part))) return text;
  const shares = new Map<string, number>();
  for (const [part, share] of blend) {
    const meant = parseBlend(aliases.get(part) ?? part) ?? new Map([[part, 1]]);
    for (const [voice, of] of meant) shares.set(voice, (shares.get(voice) ?? 0) + share * of);
  }
  const [only, ...others] = [...shares.keys()];
  return others.length === 0 ? only! : [...shares].map(([voice, share]) => `${voice}(${share.toFixed(4)})`).join('+');
}

/** Resolves a table's aliases for a model with these voices. Aliases that it cannot speak, or that are voices of its own, are left out. */
export function resolveVoices(table: VoiceTable, voices: readonly string[]): ReadonlyMap<string, string> {
  const known = new Set(voices);
  const speakable = (text: string): boolean => [...(parseBlend(text)?.keys() ?? ['\0'])].every((voice) => known.has(voice));
  const pairs = [...table].flatMap(([name, choices]) => {
    const choice = known.has(name) ? undefined : choices.find(speakable);
    return choice === undefined ? [] : [[name, choice] as const];
  });
  return new Map(pairs);
}
