import type { RadixNode } from '../cache/radix-node.ts';
import { assert } from '../errors.ts';
import { PENALTY_NAMES, SAMPLING } from '../sampling.ts';
import type { CutName, PenaltyName } from '../sampling.ts';

export type SequenceStatus = 'waiting' | 'running' | 'retracted' | 'finished';

/** Sampling settings with every default filled in. */
export interface ResolvedSampling extends Readonly<Record<CutName, number>> {
  /** 0 = greedy. */
  readonly temperature: number;
  readonly seed: number;
  /** Logit processing before the sampler; absent = none. */
  readonly logits?: LogitOptions | undefined;
}

/** What is done to a sequence's logits between the vocabulary head and the sampler. */
export interface LogitOptions extends Readonly<Record<PenaltyName, number>> {
  /** (token id, bias) pairs. */
  readonly bias: readonly (readonly [number, number])[];
  /** Number of alternatives reported with each token's log-probability; undefined = no log-probabilities. */
  readonly logprobs: number | undefined;
  /** A grammar restricts the tokens: `Sequence.mask` has those it allows. */
  readonly constrained: boolean;
  /** Least number of generated tokens: until then none of `endTokens` may be sampled. */
  readonly minTokens: number;
  readonly endTokens: readonly number[];
}

/** Whether a penalty is set, so that the tokens so far change the next logits. */
export function isPenalized(options: LogitOptions): boolean {
  return PENALTY_NAMES.some((name) => options[name] !== SAMPLING[name].default);
}

/** The recurrent-state slots that a running sequence holds. */
export interface SequenceState {
  /** Its own slot: the state after its computed positions, once a step has run. */
  slot: number;
  /** Where a step that verifies drafts leaves the state after all of them; undefined without speculative decoding. */
  spare: number | undefined;
  /** A state copy after `at` tokens of which some are unverified drafts; it is kept or dropped when they are settled. */
  drafted: { readonly slot: number; readonly at: number } | undefined;
  /** The cached state that its first step begins from. */
  from: number | undefined;
  /** A copy of the state after its first `at` tokens, a whole number of pages, for the prefix cache. */
  kept: { readonly slot: number; readonly at: number } | undefined;
  /**
   * Ascending positions after which a state should be kept: where other prompts diverge from this one, and the last page boundary in its
   * prompt.
   */
  wanted: readonly number[];
}

export interface SequenceOptions {
  readonly id: number;
  readonly promptTokens: readonly number[];
  readonly maxTokens: number;
  readonly sampling: ResolvedSampling;
  /** Index of this choice among the `n` of its request. */
  readonly choice: number;
  /** Namespace of the prefix cache; default the shared one. */
  readonly salt?: string;
  /** 1 + the index of its LoRA adapter, whose keys must have a salt of their own; default 0, none. */
  readonly lora?: number;
  /** Higher priorities go first; default 0. */
  readonly priority?: number;
}

/**
 * One sequence of tokens on its way through the engine.
 *
 *     tokens:  |------- prompt -------|--- generated, known to the host ---|- pending -|
 *     KV:      |-- computed: written by submitted steps --|
 *
 * `pending` is the token (0 or 1) that a submitted step samples and the host has not read: the next step takes it from the device.
 */
export class Sequence {
  readonly id: number;
  readonly tokens: number[];
  readonly numPrompt: number;
  readonly maxTokens: number;
  readonly sampling: ResolvedSampling;
  readonly choice: number;
  readonly salt: string;
  readonly lora: number;
  readonly priority: number;
  status: SequenceStatus = 'waiting';
  /** Positions whose keys and values have been written by submitted steps. */
  computed = 0;
  /** Tokens found in the prefix cache at the first admission. */
  cached = 0;
  pending = 0;
  /** Submitted steps that compute this sequence and have not completed: it keeps its pages until there are none. */
  inFlight = 0;
  pages: number[] = [];
  /** Pages of the sliding-window layers, beginning with page `firstWindow` of the sequence. */
  windows: number[] = [];
  firstWindow = 0;
  /** Recurrent-state slots while it runs, in models with recurrent layers. */
  state: SequenceState | undefined;
  /** Row of the block table while it runs, else -1. */
  row = -1;
  /** Last node of the path in the prefix cache that is locked for this sequence. */
  node: RadixNode | undefined;
  /** Number of its first pages that are in the prefix cache. */
  published = 0;
  /** Bit mask over the vocabulary, set where the grammar allows the next token. A constrained sequence without a mask is not computed. */
  mask: Int32Array | undefined;
  /** Its reader is behind: it keeps its pages but is not computed. */
  paused = false;
  /** A submitted step verifies drafts, so how many tokens it yields is not known yet. */
  verifying = false;
  /** A submitted step has computed part of it, perhaps before it was retracted. */
  hasRun = false;
  /** Its latest step since admission has sampled, so the draft head has the hidden state that its last token came from. */
  hasSampled = false;
  /** Accepted drafts that are computed once more: the recurrent state lies before them, since a later draft was wrong. */
  again = 0;
  /** How often a later arrival of the same or a lower priority was admitted before this one. */
  overtaken = 0;

  constructor({ id, promptTokens, maxTokens, sampling, choice, salt = '', lora = 0, priority = 0 }: SequenceOptions) {
    assert(promptTokens.length > 0 && maxTokens > 0, `sequence ${id}: ${promptTokens.length} prompt tokens, ${maxTokens} to generate`);
    this.id = id;
    this.tokens = [...promptTokens];
    this.numPrompt = promptTokens.length;
    this.maxTokens = maxTokens;
    this.sampling = sampling;
    this.choice = choice;
    this.salt = salt;
    this.lora = lora;
    this.priority = priority;
  }

  /** Number of tokens, including one that only the device knows. */
  get length(): number {
    return this.tokens.length + this.pending;
  }

  /** Tokens whose keys and values are still to be computed; 1 in steady decode. */
  get uncomputed(): number {
    return this.length - this.computed;
  }

  /** Whether only its last token is left to be computed, apart from accepted drafts that are computed again. */
  get isDecoding(): boolean {
    return this.computed > 0 && this.uncomputed === 1 + this.again;
  }

  get numGenerated(): number {
    return this.length - this.numPrompt;
  }

  /**
   * Whether the next token must wait: for the reader, for a verification, or for the grammar, which must see each token before it allows
   * the next.
   */
  get isBlocked(): boolean {
    return this.paused || this.verifying || (this.sampling.logits?.constrained === true && (this.pending > 0 || this.mask === undefined));
  }

  /** Whether drafts may be verified: a grammar's mask and the counts of penalties are those of the next token only. */
  get canSpeculate(): boolean {
    const { logits } = this.sampling;
    return !(logits && (logits.constrained || isPenalized(logits)));
  }

  /** Whether another token may be sampled. */
  get canGrow(): boolean {
    return this.numGenerated < this.maxTokens;
  }
}
