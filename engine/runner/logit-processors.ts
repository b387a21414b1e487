import type { Device } from '../gpu/device.ts';
import type { Recorder } from '../gpu/recorder.ts';
import type { Readback } from '../gpu/staging.ts';
import type { Tensor } from '../gpu/tensor.ts';
import {
  LOGPROB_WORDS, NO_SLOT, PENALTY_WORDS, biasLogits, countTokens, initialCounts, logprobs, maskLogits, penalizeLogits,
} from '../ops/logits.ts'; // prettier-ignore
import type { SampledRow } from '../scheduler/batch.ts';
import { isPenalized } from '../scheduler/sequence.ts';
import type { Sequence } from '../scheduler/sequence.ts';
import { ceilDiv } from '../util/math.ts';

/** Log-probabilities of one sampled token, from the model's unmodified logits. */
export interface TokenLogprobs {
  readonly logprob: number;
  /** Best first. */
  readonly top: readonly { readonly token: number; readonly logprob: number }[];
}

/** Entries of logit_bias the API allows one request. */
export const MAX_BIAS = 1024;
/** Entries of stop_token_ids the API allows one request, and the model's own ends of sequence. */
const MAX_BANNED = 1024 + 32;
/** Added to the logit of a token that may not come: low enough for that, high enough to stay finite beside a grammar's mask. */
const BAN = -1e30;

interface Buffers {
  readonly processed: Tensor;
  readonly masked: Tensor;
  readonly masks: Tensor;
  readonly bias: Tensor;
  readonly penalties: Tensor;
  readonly slots: Tensor;
  readonly counts: Tensor;
  readonly logprobRows: Tensor;
  readonly logprobs: Tensor;
}

/** What a step needs beyond plain sampling; undefined = nothing. */
export interface LogitStep {
  readonly biasCount: number;
  readonly penalized: boolean;
  readonly changed: boolean;
  /** Sampled rows that report log-probabilities, and the most alternatives any of them asks for. */
  readonly reported: readonly number[];
  readonly top: number;
}

/**
 * Grammar masks, biases, penalties and log-probabilities of a batch. Their buffers are made at the first request that asks for any of
 * them and kept; batches in which nobody asks never come here.
 */
export class LogitProcessors {
  readonly #device: Device;
  readonly #vocabulary: number;
  readonly #slots: number;
  readonly #rows: number;
  /** The sequence whose tokens a slot's counts hold. */
  readonly #counted: (Sequence | undefined)[] = [];
  #buffers: Buffers | undefined;

  /** `slots` = sequences that run at a time, `rows` = most rows that yield tokens in one step. */
  constructor(device: Device, vocabulary: number, slots: number, rows: number) {
    this.#device = device;
    this.#vocabulary = vocabulary;
    this.#slots = slots;
    this.#rows = rows;
  }

  /** Uploads what the sampled rows of a step ask for. */
  prepare(sampled: readonly SampledRow[]): LogitStep | undefined {
    const options = sampled.map(({ sequence }) => sequence.sampling.logits);
    if (options.every((option) => option === undefined)) return undefined;
    const buffers = (this.#buffers ??= this.#allocate());
    const penalized = options.some((option) => option && isPenalized(option));
    if (penalized) this.#writePenalties(buffers, sampled);
    this.#writeMasks(buffers, sampled);
    const biasCount = this.#writeBias(buffers, sampled);
    const reported = options.flatMap((option, i) => (option?.logprobs === undefined ? [] : [i]));
    if (reported.length > 0) this.#device.write(buffers.logprobRows, Uint32Array.from(reported));
    const changed = penalized || biasCount > 0 || options.some((option) => option?.constrained);
    return { biasCount, penalized, changed, reported, top: Math.max(0, ...options.map((option) => option?.logprobs ?? 0)) };
  }

  /** The logits to sample from. */
  process(rec: Recorder, step: LogitStep, logits: Tensor, rows: number): Tensor {
    if (!step.changed) return logits;
    const { processed, masked, masks, bias, penalties, counts } = this.#buffers!;
    maskLogits(rec, { logits, masked, masks, out: processed, rows, vocabulary: this.#vocabulary });
    if (step.biasCount > 0) biasLogits(rec, { entries: bias, logits: processed, count: step.biasCount });
    if (step.penalized) penalizeLogits(rec, { penalties, counts, logits: processed, rows });
    return processed;
  }

  /** After sampling: counts the tokens, and reads the log-probabilities of the rows that report them. */
  finish(rec: Recorder, step: LogitStep, logits: Tensor, sampled: Tensor, rows: number): Readback | undefined {
    const { slots, counts, logprobRows, logprobs: out } = this.#buffers!;
    if (step.penalized) countTokens(rec, { slots, sampled, counts, rows });
    const count = step.reported.length;
    if (count === 0) return undefined;
    logprobs(rec, { logits, indices: logprobRows, sampled, out, count, vocabulary: this.#vocabulary, top: step.top });
    return rec.readback(out, count * LOGPROB_WORDS * 4);
  }

  /** What finish() read, by row of the batch's sampled list. */
  parse(step: LogitStep, sampled: readonly SampledRow[], data: ArrayBuffer): readonly (TokenLogprobs | undefined)[] {
    const words = new Uint32Array(data);
    const floats = new Float32Array(data);
    const byRow: (TokenLogprobs | undefined)[] = sampled.map(() => undefined);
    step.reported.forEach((row, i) => {
      const at = i * LOGPROB_WORDS;
      const logSumExp = floats[at]!;
      const count = Math.min(sampled[row]!.sequence.sampling.logits?.logprobs ?? 0, this.#vocabulary);
      const top = Array.from({ length: count }, (_, j) => ({
        token: words[at + 2 + 2 * j]!,
        logprob: floats[at + 3 + 2 * j]! - logSumExp,
      }));
      byRow[row] = { logprob: floats[at + 1]! - logSumExp, top };
    });
    return byRow;
  }

  #allocate(): Buffers {
    const { tensor } = { tensor: this.#device.tensor.bind(this.#device) };
    const [rows, vocabulary] = [this.#rows, this.#vocabulary];
    return {
      processed: tensor('processed logits', 'f32', [rows, vocabulary]),
      masked: tensor('masked rows', 'u32', [rows]),
      masks: tensor('grammar masks', 'u32', [rows, ceilDiv(vocabulary, 32)]),
      bias: tensor('logit bias', 'u32', [rows * (MAX_BIAS + MAX_BANNED), 3]),
      penalties: tensor('penalties', 'u32', [rows, PENALTY_WORDS]),
      slots: tensor('counted slots', 'u32', [rows]),
      counts: tensor('token counts', 'u32', [this.#slots, vocabulary]),
      logprobRows: tensor('logprob rows', 'u32', [rows]),
      logprobs: tensor('logprobs', 'u32', [rows, LOGPROB_WORDS]),
    };
  }

  #writeMasks({ masked, masks }: Buffers, sampled: readonly SampledRow[]): void {
    const flags = new Uint32Array(this.#rows);
    sampled.forEach(({ sequence: { mask } }, row) => {
      if (!mask) return;
      flags[row] = 1;
      this.#device.write(masks, mask, row * ceilDiv(this.#vocabulary, 32));
    });
    this.#device.write(masked, flags);
  }

  #writeBias({ bias }: Buffers, sampled: readonly SampledRow[]): number {
    const entries = sampled.flatMap((at, row) => biasesOf(at).map(([token, value]) => [row, token, value] as const));
    if (entries.length === 0) return 0;
    const words = new Uint32Array(entries.length * 3);
    const floats = new Float32Array(words.buffer);
    entries.forEach(([row, token, value], i) => {
      words.set([row, token], i * 3);
      floats[i * 3 + 2] = value;
    });
    this.#device.write(bias, words);
    return entries.length;
  }

  /** Rows without penalties get neutral ones; a sequence new to its slot brings the counts of the tokens it has. */
  #writePenalties({ penalties, slots, counts }: Buffers, sampled: readonly SampledRow[]): void {
    const words = new Uint32Array(this.#rows * PENALTY_WORDS);
    const floats = new Float32Array(words.buffer);
    const countedSlots = new Uint32Array(this.#rows).fill(NO_SLOT);
    for (let row = 0; row < this.#rows; row++) {
      floats[row * PENALTY_WORDS] = 1;
      const sequence = sampled[row]?.sequence;
      const option = sequence?.sampling.logits;
      if (!sequence || !option || !isPenalized(option)) continue;
      floats.set([option.repetitionPenalty, option.presencePenalty, option.frequencyPenalty], row * PENALTY_WORDS);
      words[row * PENALTY_WORDS + 3] = sequence.row;
      countedSlots[row] = sequence.row;
      if (this.#counted[sequence.row] === sequence) continue;
      this.#counted[sequence.row] = sequence;
      const { tokens, numPrompt } = sequence;
      const initial = initialCounts(this.#vocabulary, tokens.slice(0, numPrompt), tokens.slice(numPrompt));
      this.#device.write(counts, initial, sequence.row * this.#vocabulary);
    }
    this.#device.write(penalties, words);
    this.#device.write(slots, countedSlots);
  }
}

/** The request's own biases, and a ban of the tokens that would end the answer too early; each token once. */
function biasesOf({ sequence: { sampling, numPrompt }, position }: SampledRow): readonly (readonly [number, number])[] {
  const { logits } = sampling;
  if (!logits) return [];
  if (position - numPrompt >= logits.minTokens || logits.endTokens.length === 0) return logits.bias;
  const banned = new Set(logits.endTokens);
  return [...logits.bias.filter(([token]) => !banned.has(token)), ...logits.endTokens.map((token) => [token, BAN] as const)];
}
