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
  /** What changes logits before sampling, or reports them; absent = nothing does. */
  readonly logits?: LogitOptions | undefined;
}

/** Per-sequence work between the vocabulary head and the sampler. */
export interface LogitOptions extends Readonly<Record<PenaltyName, number>> {
  /** (token, bias) pairs. */
  readonly bias: readonly (readonly [number, number])[];
  /** Number of alternatives reported with each token's log-probability; undefined = no log-probabilities. */
  readonly logprobs: number | undefined;
  /** A grammar allows tokens by `Sequence.mask`. */
  readonly constrained: boolean;
  /** The answer has at least this many tokens: until then none of `endTokens` may come. */
  readonly minTokens: number;
  readonly endTokens: readonly number[];
}

/** Whether the tokens so far change the logits of the next. */
export function isPenalized(options: LogitOptions): boolean {
  return PENALTY_NAMES.some((name) => options[name] !== SAMPLING[name].default);
}

/** What a running sequence holds of a model with recurrent layers. */
export interface SequenceState {
  /** Its own slot: the state behind what is computed, once a step was. */
  slot: number;
  /** Where a step that verifies guesses leaves the state behind all of them; undefined where nothing is guessed. */
  spare: number | undefined;
  /** A copy behind tokens that are guessed; what it becomes is known when they are. */
  guessed: { readonly slot: number; readonly at: number } | undefined;
  /** A cached state that its first step begins from. */
  from: number | undefined;
  /** The state behind its first `at` tokens, a whole number of pages, for the prefix cache. */
  kept: { readonly slot: number; readonly at: number } | undefined;
  /** Positions whose states are wanted on the way, in order: where other prompts part from this one, and the last end of a page in its prompt. */
  wanted: readonly number[];
}

export interface SequenceOptions {
  readonly id: number;
  readonly promptTokens: readonly number[];
  readonly maxTokens: number;
  readonly sampling: ResolvedSampling;
  /** Index of the choice of its request. */
  readonly choice: number;
  /** Namespace of the prefix cache; default shared. */
  readonly salt?: string;
  /** Higher goes first; default 0. */
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
  readonly priority: number;
  status: SequenceStatus = 'waiting';
  /** Positions whose keys and values submitted steps write. */
  computed = 0;
  /** Prompt tokens that were found in the cache. */
  cached = 0;
  pending = 0;
  /** Submitted steps that hold this sequence and have not completed: its pages stay until there are none. */
  inFlight = 0;
  pages: number[] = [];
  /** Pages of the layers that see a window only, from page `firstWindow` of the sequence on. */
  windows: number[] = [];
  firstWindow = 0;
  /** While it runs. */
  state: SequenceState | undefined;
  /** Row of the block table while running, else -1. */
  row = -1;
  /** End of the path in the prefix cache that is locked for this sequence. */
  node: RadixNode | undefined;
  /** Pages the prefix cache knows. */
  published = 0;
  /** One bit a token that may come next; a constrained sequence without one is not computed. */
  mask: Int32Array | undefined;
  /** Its reader is behind: it keeps its place and is not computed. */
  paused = false;
  /** A submitted step verifies guesses: how many tokens it yields is not known yet. */
  verifying = false;
  /** A submitted step has computed something of it, also where it has lost its place since. */
  hasRun = false;
  /** Its last step since it was admitted has sampled for it: the head that guesses knows what its last token came from. */
  hasSampled = false;
  /** Guesses that were right, before one that was not: with a state, which lies before them, they are computed once more. */
  again = 0;
  /** How often a sequence of the same or a lower priority that arrived later was admitted before this one. */
  overtaken = 0;

  constructor({ id, promptTokens, maxTokens, sampling, choice, salt = '', priority = 0 }: SequenceOptions) {
    assert(promptTokens.length > 0 && maxTokens > 0, `sequence ${id}: ${promptTokens.length} prompt tokens, ${maxTokens} to generate`);
    this.id = id;
    this.tokens = [...promptTokens];
    this.numPrompt = promptTokens.length;
    this.maxTokens = maxTokens;
    this.sampling = sampling;
    this.choice = choice;
    this.salt = salt;
    this.priority = priority;
  }

  /** Tokens that exist, also those only the device knows. */
  get length(): number {
    return this.tokens.length + this.pending;
  }

  /** Tokens whose keys and values are still to be computed; 1 in steady decode. */
  get uncomputed(): number {
    return this.length - this.computed;
  }

  /** Whether only its last token is left to be computed, but for guesses that were right. */
  get isDecoding(): boolean {
    return this.computed > 0 && this.uncomputed === 1 + this.again;
  }

  get numGenerated(): number {
    return this.length - this.numPrompt;
  }

  /** Whether the next token must wait: for the reader, or for what the host has not decided (a grammar needs each token before it can allow the next). */
  get isBlocked(): boolean {
    return this.paused || this.verifying || (this.sampling.logits?.constrained === true && (this.pending > 0 || this.mask === undefined));
  }

  /** Whether several tokens may be verified at once: a grammar's mask and the counts of penalties hold for the next token only. */
  get canSpeculate(): boolean {
    const { logits } = this.sampling;
    return !(logits && (logits.constrained || isPenalized(logits)));
  }

  /** Whether another token may be sampled. */
  get canGrow(): boolean {
    return this.numGenerated < this.maxTokens;
  }
}
