import { assert } from '../errors.ts';
import { defineKernel } from '../gpu/kernel.ts';
import type { Recorder } from '../gpu/recorder.ts';
import type { Tensor } from '../gpu/tensor.ts';
import { ceilDiv } from '../util/math.ts';

/** 4-byte words of one row of settings; the WGSL struct is in sample/constrained_token.wgsl. */
export const TOKEN_ROW_WORDS = 8;

/** How one row's token is chosen. */
export interface TokenRow {
  /** Index of the sequence's state and of its place in lastTokens. */
  readonly slot: number;
  /** Row of `masks`. */
  readonly mask: number;
  /** Apply Whisper's rules for timestamps. */
  readonly timestamps?: boolean;
  /** First token of a transcript: the state starts anew. */
  readonly first?: boolean;
  /** Return the log-probability of this token over the whole vocabulary, and leave the state alone. */
  readonly probe?: number;
  /** 0 (default) = greedy. */
  readonly temperature?: number;
  readonly seed?: number;
  /** Names, with the seed, the row's random numbers. */
  readonly position?: number;
}

/** Writes a row's settings at `index` of a host buffer that is uploaded as it is. */
export function writeTokenRow(words: Uint32Array, index: number, row: TokenRow): void {
  const at = index * TOKEN_ROW_WORDS;
  const { temperature = 0 } = row;
  words[at] = row.slot;
  words[at + 1] = row.mask;
  words[at + 2] = (row.timestamps ? 1 : 0) | (row.first ? 2 : 0) | (row.probe === undefined ? 0 : 4);
  words[at + 3] = row.probe ?? 0;
  new Float32Array(words.buffer, words.byteOffset, words.length)[at + 4] = temperature > 0 ? 1 / temperature : 0;
  words[at + 5] = (row.seed ?? 0) >>> 0;
  words[at + 6] = row.position ?? 0;
}

/** A bit a token, set = never: `banned` ids of a vocabulary as one row of `masks`. */
export function tokenMask(vocabulary: number, banned: (token: number) => boolean): Uint32Array {
  const words = new Uint32Array(ceilDiv(vocabulary, 32));
  for (let token = 0; token < vocabulary; token++) if (banned(token)) words[token >> 5]! |= 1 << (token & 31);
  return words;
}

export const CONSTRAINED_TOKEN = defineKernel({
  file: 'sample/constrained_token.wgsl',
  fragments: () => ['lib/sine.wgsl', 'lib/mulberry.wgsl'],
  bindings: { logits: 'read', rows: 'read', masks: 'read', state: 'update', last_tokens: 'update', results: 'write' },
  params: { vocabulary: 'u32', stride: 'u32', mask_words: 'u32', timestamp_begin: 'u32', eos: 'u32', max_initial: 'u32' },
  overrides: { WG: 'u32' },
});

/** Ids that the rules speak of. */
export interface TokenRules {
  readonly vocabulary: number;
  /** First timestamp id; `vocabulary` where there are none. */
  readonly timestampBegin: number;
  readonly eos: number;
  /** The first timestamp is at most this many steps after the beginning. */
  readonly maxInitialTimestamp: number;
}

export interface ConstrainedTokenArgs {
  /** [B, >= V] f32. */
  readonly logits: Tensor;
  readonly rules: TokenRules;
  /** [B, TOKEN_ROW_WORDS] u32 from writeTokenRow. */
  readonly settings: Tensor;
  /** [masks, ceil(V / 32)] u32 from tokenMask. */
  readonly masks: Tensor;
  /** [slots, 4] u32. */
  readonly state: Tensor;
  /** [slots] u32: the token of each slot, for the next step. */
  readonly lastTokens: Tensor;
  /** [B, 2] u32: token and bits of its log-probability. */
  readonly results: Tensor;
  readonly rows: number;
}

/** Chooses one token a row under masks and timestamp rules. */
export function constrainedToken(rec: Recorder, args: ConstrainedTokenArgs): void {
  const { logits, rules, settings, masks, state, lastTokens, results, rows } = args;
  const maskWords = masks.shape[1] ?? 0;
  assert(maskWords === ceilDiv(rules.vocabulary, 32), `constrained_token: masks of ${maskWords} words for ${rules.vocabulary} tokens`);
  const params = {
    vocabulary: rules.vocabulary, stride: logits.shape[1] ?? 0, mask_words: maskWords, timestamp_begin: rules.timestampBegin, eos: rules.eos,
    max_initial: rules.maxInitialTimestamp,
  }; // prettier-ignore
  const variant = { overrides: { WG: rec.caps.family === 'cpu' ? 8 : 128 } };
  const bindings = { logits, rows: settings, masks, state, last_tokens: lastTokens, results };
  rec.dispatch(CONSTRAINED_TOKEN, variant, bindings, params, [rows]);
}
