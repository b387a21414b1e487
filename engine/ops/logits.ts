/**
 * Logit processing between the vocabulary head and the sampler: grammar masks, biases, penalties, log-probabilities. Each is dispatched
 * only when a row of the batch asks for it, and changes no bit of the other rows.
 */
import { assert } from '../errors.ts';
import { defineKernel } from '../gpu/kernel.ts';
import type { Recorder } from '../gpu/recorder.ts';
import type { Tensor } from '../gpu/tensor.ts';
import { ceilDiv } from '../util/math.ts';

const WG = 64;

/** The largest `top_logprobs` of the API. */
export const MAX_TOP_LOGPROBS = 20;
/** u32 words per row of log-probabilities: log sum exp, sampled logit, then pairs of (token, logit). */
export const LOGPROB_WORDS = 2 + 2 * MAX_TOP_LOGPROBS;
/** u32 words per row of penalties: repetition, presence, frequency (f32), slot (u32). */
export const PENALTY_WORDS = 4;
/** Slot of a row whose sampled token is not counted. */
export const NO_SLOT = 0xffffffff;

export const MASK_LOGITS = defineKernel({
  file: 'sample/mask_logits.wgsl',
  bindings: { logits: 'read', masked: 'read', masks: 'read', out: 'write' },
  params: { rows: 'u32', vocabulary: 'u32', stride: 'u32', words: 'u32' },
  overrides: { WG: 'u32' },
});

export interface MaskLogitsArgs {
  /** [B, stride] f32. */
  readonly logits: Tensor;
  /** [B] u32: 0 = the row has no mask. */
  readonly masked: Tensor;
  /** [B, ceil(V / 32)] u32. */
  readonly masks: Tensor;
  /** [B, stride] f32. */
  readonly out: Tensor;
  readonly rows: number;
  readonly vocabulary: number;
}

/** Copies logits and masks out tokens that a grammar forbids; the originals are left to logprobs(). */
export function maskLogits(rec: Recorder, { logits, masked, masks, out, rows, vocabulary }: MaskLogitsArgs): void {
  const params = { rows, vocabulary, stride: logits.shape[1]!, words: masks.shape[1]! };
  assert(params.words >= ceilDiv(vocabulary, 32), `mask_logits: ${params.words} words for ${vocabulary} tokens`);
  rec.dispatch(MASK_LOGITS, { overrides: { WG } }, { logits, masked, masks, out }, params, [ceilDiv(vocabulary, WG), rows]);
}

export const BIAS_LOGITS = defineKernel({
  file: 'sample/bias_logits.wgsl',
  bindings: { entries: 'read', logits: 'update' },
  params: { count: 'u32', stride: 'u32' },
  overrides: { WG: 'u32' },
});

/** Adds `count` entries of (row u32, token u32, bias f32) to logits [B, stride] in place. */
export function biasLogits(rec: Recorder, { entries, logits, count }: { entries: Tensor; logits: Tensor; count: number }): void {
  rec.dispatch(BIAS_LOGITS, { overrides: { WG } }, { entries, logits }, { count, stride: logits.shape[1]! }, [ceilDiv(count, WG)]);
}

export const PENALIZE_LOGITS = defineKernel({
  file: 'sample/penalize_logits.wgsl',
  bindings: { rows: 'read', counts: 'read', logits: 'update' },
  params: { vocabulary: 'u32', stride: 'u32' },
  overrides: { WG: 'u32' },
});

export interface PenalizeArgs {
  /** [B, PENALTY_WORDS]. */
  readonly penalties: Tensor;
  /** [slots, V] u32 from initialCounts and countTokens. */
  readonly counts: Tensor;
  /** [B, stride] f32, changed in place. */
  readonly logits: Tensor;
  readonly rows: number;
}

/** Applies repetition, presence and frequency penalties. */
export function penalizeLogits(rec: Recorder, { penalties, counts, logits, rows }: PenalizeArgs): void {
  const vocabulary = counts.shape[1]!;
  const params = { vocabulary, stride: logits.shape[1]! };
  rec.dispatch(PENALIZE_LOGITS, { overrides: { WG } }, { rows: penalties, counts, logits }, params, [ceilDiv(vocabulary, WG), rows]);
}

export const COUNT_TOKENS = defineKernel({
  file: 'sample/count_tokens.wgsl',
  bindings: { slots: 'read', sampled: 'read', counts: 'update' },
  params: { rows: 'u32', vocabulary: 'u32' },
  overrides: { WG: 'u32' },
});

/** Top bit of a count: the token is in the prompt. */
const IN_PROMPT = 0x80000000;

/** Counts the tokens just sampled in their slots [B] u32; skips rows with NO_SLOT. */
export function countTokens(
  rec: Recorder,
  { slots, sampled, counts, rows }: { slots: Tensor; sampled: Tensor; counts: Tensor; rows: number },
): void {
  rec.dispatch(COUNT_TOKENS, { overrides: { WG } }, { slots, sampled, counts }, { rows, vocabulary: counts.shape[1]! }, [
    ceilDiv(rows, WG),
  ]);
}

/** A slot's counts [V] for a sequence that begins with these tokens. */
export function initialCounts(vocabulary: number, prompt: Iterable<number>, answer: Iterable<number>): Uint32Array {
  const counts = new Uint32Array(vocabulary);
  for (const token of answer) counts[token]!++;
  for (const token of prompt) counts[token]! |= IN_PROMPT;
  return counts;
}

export const LOGPROBS = defineKernel({
  file: 'sample/logprobs.wgsl',
  bindings: { logits: 'read', indices: 'read', sampled: 'read', out: 'write' },
  params: { vocabulary: 'u32', stride: 'u32', top: 'u32', out_stride: 'u32', at: 'u32' },
  overrides: { WG: 'u32' },
});

export interface LogprobsArgs {
  /** [B, stride] f32, as the model gave them. */
  readonly logits: Tensor;
  /** [R] u32: the rows that report log-probabilities. */
  readonly indices: Tensor;
  /** [B] u32. */
  readonly sampled: Tensor;
  /** [R, LOGPROB_WORDS] u32, from word `at` (default 0). */
  readonly out: Tensor;
  readonly at?: number;
  readonly count: number;
  readonly vocabulary: number;
  /** Alternatives per row, 0..MAX_TOP_LOGPROBS: the most that any row asks for. */
  readonly top: number;
}

/** Computes the log-softmax of the unmodified logits for the rows that report it. */
export function logprobs(rec: Recorder, { logits, indices, sampled, out, at = 0, count, vocabulary, top }: LogprobsArgs): void {
  const params = { vocabulary, stride: logits.shape[1]!, top, out_stride: LOGPROB_WORDS, at };
  const wg = rec.caps.family === 'cpu' ? 8 : 128;
  rec.dispatch(LOGPROBS, { overrides: { WG: wg } }, { logits, indices, sampled, out }, params, [count]);
}
