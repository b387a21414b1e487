import { assert } from '../errors.ts';
import { defineKernel } from '../gpu/kernel.ts';
import type { Recorder } from '../gpu/recorder.ts';
import type { Tensor } from '../gpu/tensor.ts';
import { ceilDiv } from '../util/math.ts';

/** u32 words of one row of settings; the WGSL struct is in sample/constrained_token.wgsl. */
export const TOKEN_ROW_WORDS = 8;

/** How one row's token is chosen. */
export interface TokenRow {
  /** Index of the sequence's state and of its place in lastTokens. */
  readonly slot: number;
  /** Row of `masks` that applies. */
  readonly mask: number;
  /** Apply Whisper's rules for timestamps. */
  readonly timestamps?: boolean;
  /** First token of a transcript, which resets the state. */
  readonly first?: boolean;
  /** Returns the log-probability of this token over the whole vocabulary, and leaves the state alone. */
  readonly probe?: number;
  /** 0 (default) = greedy. */
  readonly temperature?: number;
  readonly seed?: number;
  /** Selects, with the seed, the row's random numbers. */
  readonly position?: number;
  /** Summary of the tokens so far, from summarise(): the row is for tokenCandidates(), which reads no slots. */
  readonly history?: number;
}

/** Packs what the timestamp rules need of a transcript's tokens into a word. */
export function summarise(tokens: readonly number[], timestampBegin: number): number {
  const isTimestamp = (token: number | undefined): boolean => token !== undefined && token >= timestampBegin;
  const last = isTimestamp(tokens.at(-1)) ? 1 : 0;
  const before = tokens.length < 2 || isTimestamp(tokens.at(-2)) ? 2 : 0;
  return last + before + 4 * (tokens.findLast(isTimestamp) ?? 0);
}

/** Below it the likeliest token is drawn all the same, and logits divided by a far lower temperature overflow f32. */
const LEAST_TEMPERATURE = 1e-6;

/** Writes a row's settings at row `index` of a host buffer, which is uploaded unchanged. */
export function writeTokenRow(words: Uint32Array, index: number, row: TokenRow): void {
  const at = index * TOKEN_ROW_WORDS;
  const { temperature = 0 } = row;
  words[at] = row.slot;
  words[at + 1] = row.mask;
  words[at + 2] = (row.timestamps ? 1 : 0) | (row.first ? 2 : 0) | (row.probe === undefined ? 0 : 4) | (row.history === undefined ? 0 : 8);
  words[at + 3] = row.probe ?? 0;
  new Float32Array(words.buffer, words.byteOffset, words.length)[at + 4] =
    temperature > 0 ? 1 / Math.max(temperature, LEAST_TEMPERATURE) : 0;
  words[at + 5] = (row.seed ?? 0) >>> 0;
  words[at + 6] = row.position ?? 0;
  words[at + 7] = row.history ?? 0;
}

/** A row of `masks`: one bit per token, set for the `banned` ids. */
export function tokenMask(vocabulary: number, banned: (token: number) => boolean): Uint32Array {
  const words = new Uint32Array(ceilDiv(vocabulary, 32));
  for (let token = 0; token < vocabulary; token++) if (banned(token)) words[token >> 5]! |= 1 << (token & 31);
  return words;
}

const PARAMS = {
  vocabulary: 'u32', stride: 'u32', mask_words: 'u32', timestamp_begin: 'u32', eos: 'u32', max_initial: 'u32',
} as const; // prettier-ignore

export const CONSTRAINED_TOKEN = defineKernel({
  file: 'sample/constrained_token.wgsl',
  fragments: () => ['lib/sine.wgsl', 'lib/random_bits.wgsl', 'lib/mulberry.wgsl', 'lib/minus_log.wgsl', 'lib/token_rules.wgsl'],
  bindings: { logits: 'read', rows: 'read', masks: 'read', state: 'update', last_tokens: 'update', results: 'write' },
  params: PARAMS,
  overrides: { WG: 'u32' },
});

export const TOKEN_CANDIDATES = defineKernel({
  file: 'sample/token_candidates.wgsl',
  fragments: () => ['lib/token_rules.wgsl'],
  bindings: { logits: 'read', rows: 'read', masks: 'read', candidates: 'write' },
  params: PARAMS,
  overrides: { WG: 'u32', COUNT: 'u32' },
});

/** Token ids of the timestamp rules. */
export interface TokenRules {
  readonly vocabulary: number;
  /** First timestamp id; `vocabulary` where there are none. */
  readonly timestampBegin: number;
  readonly eos: number;
  /** Latest first timestamp, in steps. */
  readonly maxInitialTimestamp: number;
}

export interface TokenCandidatesArgs {
  /** [B, >= V] f32. */
  readonly logits: Tensor;
  readonly rules: TokenRules;
  /** [B, TOKEN_ROW_WORDS] u32 from writeTokenRow. */
  readonly settings: Tensor;
  /** [masks, ceil(V / 32)] u32 from tokenMask. */
  readonly masks: Tensor;
  /** [B, N, 2] u32: the N best tokens of a row with a history and the bits of their log-probabilities; NO_TOKEN where fewer are allowed. */
  readonly candidates: Tensor;
  readonly rows: number;
}

/** Stands for no token, where fewer than N are allowed. */
export const NO_TOKEN = 0xffffffff;

export interface ConstrainedTokenArgs extends Omit<TokenCandidatesArgs, 'candidates'> {
  /** [slots, 4] u32. */
  readonly state: Tensor;
  /** [slots] u32: the token of each slot, for the next step. */
  readonly lastTokens: Tensor;
  /** [B, 2] u32: the token, and the f32 bits of its log-probability. */
  readonly results: Tensor;
}

/** Chooses one token per row under masks and timestamp rules; skips rows with a history. */
export function constrainedToken(rec: Recorder, args: ConstrainedTokenArgs): void {
  const { logits, settings, masks, state, lastTokens, results, rows } = args;
  const bindings = { logits, rows: settings, masks, state, last_tokens: lastTokens, results };
  rec.dispatch(CONSTRAINED_TOKEN, { overrides: { WG: lanes(rec) } }, bindings, paramsOf(args), [rows]);
}

/** Chooses the N best tokens of each row with a history, under the same masks and rules. */
export function tokenCandidates(rec: Recorder, args: TokenCandidatesArgs): void {
  const { logits, settings, masks, candidates, rows } = args;
  const variant = { overrides: { WG: lanes(rec), COUNT: candidates.shape[1]! } };
  rec.dispatch(TOKEN_CANDIDATES, variant, { logits, rows: settings, masks, candidates }, paramsOf(args), [rows]);
}

const lanes = (rec: Recorder): number => (rec.caps.family === 'cpu' ? 8 : 128);

function paramsOf({ logits, rules, masks }: Pick<TokenCandidatesArgs, 'logits' | 'rules' | 'masks'>): Record<keyof typeof PARAMS, number> {
  const maskWords = masks.shape[1] ?? 0;
  assert(maskWords === ceilDiv(rules.vocabulary, 32), `constrained tokens: masks of ${maskWords} words for ${rules.vocabulary} tokens`);
  return {
    vocabulary: rules.vocabulary, stride: logits.shape[1] ?? 0, mask_words: maskWords, timestamp_begin: rules.timestampBegin, eos: rules.eos,
    max_initial: rules.maxInitialTimestamp,
  }; // prettier-ignore
}
