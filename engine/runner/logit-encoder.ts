import { NO_SLOT, PENALTY_WORDS } from '../ops/logits.ts';
import { PENALTY_NAMES, SAMPLING } from '../sampling.ts';
import type { SampledRow } from '../scheduler/batch.ts';
import { isPenalized } from '../scheduler/sequence.ts';
import { BIAS_WORDS, FRESH_HEAD } from './step-input.ts';
import type { StepInput } from './step-input.ts';

/** Bias of a banned token: low enough to ban it, high enough to stay finite beside a grammar's mask. */
const BAN = -1e30;

/** Penalties that change nothing. */
const NEUTRAL = PENALTY_NAMES.map((name) => SAMPLING[name].default);

/** Encodes the logit processing of sampled rows: grammar masks, biases, penalties, log-probabilities. */
export class LogitEncoder {
  /** By slot: id of the sequence whose tokens its counts hold. */
  readonly #counted: (number | undefined)[] = [];

  /** `rows` = logit rows: the sampled ones and padding. */
  encode(sampled: readonly SampledRow[], rows: number, input: StepInput): void {
    const options = sampled.map(({ sequence }) => sequence.sampling.logits);
    const processed = options.some((option) => option !== undefined);
    input.set('processed', processed ? 1 : 0);
    if (!processed) return;
    const penalized = options.some((option) => option && isPenalized(option));
    input.set('penalized', penalized ? 1 : 0);
    input.set('freshWords', 0);
    if (penalized) this.#encodePenalties(sampled, rows, input);
    encodeMasks(sampled, rows, input);
    const biases = encodeBiases(sampled, input);
    let reported = 0;
    options.forEach((option, row) => {
      if (option?.logprobs !== undefined) input.reported[reported++] = row;
    });
    input.set('reported', reported);
    input.set('top', Math.max(0, ...options.map((option) => option?.logprobs ?? 0)));
    input.set('changed', penalized || biases > 0 || options.some((option) => option?.constrained) ? 1 : 0);
  }

  /** Rows without penalties get neutral ones; a sequence new to its slot also brings the tokens that it has. */
  #encodePenalties(sampled: readonly SampledRow[], rows: number, input: StepInput): void {
    const { penalties, countedSlots, fresh } = input;
    const floats = new Float32Array(penalties.buffer, penalties.byteOffset, penalties.length);
    let at = 0;
    for (let row = 0; row < rows; row++) {
      floats.set(NEUTRAL, row * PENALTY_WORDS);
      penalties[row * PENALTY_WORDS + 3] = 0;
      countedSlots[row] = NO_SLOT;
      const sequence = sampled[row]?.sequence;
      const option = sequence?.sampling.logits;
      if (!sequence || !option || !isPenalized(option)) continue;
      floats.set(
        PENALTY_NAMES.map((name) => option[name]),
        row * PENALTY_WORDS,
      );
      penalties[row * PENALTY_WORDS + 3] = sequence.row;
      countedSlots[row] = sequence.row;
      if (this.#counted[sequence.row] === sequence.id) continue;
      // A retracted sequence may return to an earlier slot, whose counts would lack its tokens from here on.
      const earlier = this.#counted.indexOf(sequence.id);
      if (earlier >= 0) this.#counted[earlier] = undefined;
      this.#counted[sequence.row] = sequence.id;
      const { tokens, numPrompt } = sequence;
      fresh.set([sequence.row, numPrompt, tokens.length - numPrompt], at);
      fresh.set(tokens, at + FRESH_HEAD);
      at += FRESH_HEAD + tokens.length;
    }
    input.set('freshWords', at);
  }
}

function encodeMasks(sampled: readonly SampledRow[], rows: number, { masked, masks, maskWords }: StepInput): void {
  for (let row = 0; row < rows; row++) {
    const mask = sampled[row]?.sequence.mask;
    masked[row] = mask ? 1 : 0;
    if (mask) masks.set(mask, row * maskWords);
  }
}

function encodeBiases(sampled: readonly SampledRow[], input: StepInput): number {
  const { biases } = input;
  const floats = new Float32Array(biases.buffer, biases.byteOffset, biases.length);
  let count = 0;
  sampled.forEach((at, row) => {
    for (const [token, bias] of biasesOf(at)) {
      biases[count * BIAS_WORDS] = row;
      biases[count * BIAS_WORDS + 1] = token;
      floats[count * BIAS_WORDS + 2] = bias;
      count++;
    }
  });
  input.set('biases', count);
  return count;
}

/** The request's own biases, and bans of the tokens that would end generation before `minTokens`; each token once. */
function biasesOf({ sequence: { sampling, numPrompt }, position }: SampledRow): readonly (readonly [number, number])[] {
  const { logits } = sampling;
  if (!logits) return [];
  if (position - numPrompt >= logits.minTokens || logits.endTokens.length === 0) return logits.bias;
  const banned = new Set(logits.endTokens);
  return [...logits.bias.filter(([token]) => !banned.has(token)), ...logits.endTokens.map((token) => [token, BAN] as const)];
}
