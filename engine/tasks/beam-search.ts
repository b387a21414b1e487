/**
 * Beam search over one transcript: the `width` likeliest hypotheses are continued side by side, so that an early token can be revised when what follows makes it
 * unlikely. As in OpenAI's Whisper, the search ends with `width` finished transcripts and takes the one with the best mean log-probability; as in transformers, a
 * transcript finishes only by an end-of-text token that is among the `width` best continuations.
 *
 * Each hypothesis has a lane, a sequence in the decoder's KV cache. When several hypotheses continue the same one, one keeps its lane and the others move to free
 * lanes; the keys and values in which the lanes differ, mostly of the last few tokens, are copied.
 */
import { assert } from '../errors.ts';

/** A possible next token. */
export interface Choice {
  readonly token: number;
  readonly logprob: number;
}

/** One token to feed to the decoder. */
export interface BeamRow {
  readonly lane: number;
  /** Position in prompt and transcript together. */
  readonly position: number;
  readonly token: number;
  /** On the last row of a lane, whose best continuations (at least `width + 1`) are wanted: the transcript's tokens so far. */
  readonly history?: readonly number[];
}

/** Copy of one position's key and value between lanes, to be done before rows are fed. */
export interface BeamCopy {
  readonly from: number;
  readonly to: number;
  readonly position: number;
}

/** A transcript, without its end-of-text token. */
export interface Transcript {
  readonly tokens: readonly number[];
  /** Log-probability of each token; `logprob` is the sum over all tokens and, if it is finished, its end. */
  readonly logprobs: readonly number[];
  readonly logprob: number;
}

interface Hypothesis extends Transcript {
  readonly lane: number;
  /** Lane of the hypothesis that it continues, until its own lane has that one's keys and values. */
  from: number | undefined;
  asked: boolean;
  choices: readonly Choice[] | undefined;
}

export interface BeamSearchOptions {
  readonly width: number;
  readonly prompt: readonly number[];
  readonly eos: number;
  /** Most tokens of a transcript. */
  readonly limit: number;
}

/** The search for the transcript of one window. */
export class BeamSearch {
  readonly #options: BeamSearchOptions;
  /** Tokens whose keys and values are in each lane. */
  readonly #cached: number[][];
  readonly #finished: Transcript[] = [];
  #live: Hypothesis[];
  #done = false;

  constructor(options: BeamSearchOptions) {
    this.#options = options;
    this.#cached = Array.from({ length: options.width }, () => []);
    this.#live = [{ lane: 0, from: undefined, tokens: [], logprobs: [], logprob: 0, asked: false, choices: undefined }];
  }

  /** Whether the search has ended. */
  get done(): boolean {
    return this.#done;
  }

  /** The next copies to do, and then rows to feed, by ascending position within a lane, as far as there is room. Empty while choices are awaited. */
  plan(room: { readonly rows: number; readonly copies: number }): {
    readonly rows: readonly BeamRow[];
    readonly copies: readonly BeamCopy[];
  } {
    const { prompt } = this.#options;
    const rows: BeamRow[] = [];
    const copies: BeamCopy[] = [];
    for (const hypothesis of this.#live) {
      if (hypothesis.asked) continue;
      const { lane, tokens } = hypothesis;
      const cached = this.#cached[lane]!;
      const sequence = [...prompt, ...tokens];
      // The last token is always fed, because its continuations are wanted.
      const last = sequence.length - 1;
      cached.length = Math.min(commonPrefix(cached, sequence), last);
      // The parent's lane has all but the last token. Positions that there is no room to copy are fed again.
      const { from } = hypothesis;
      while (from !== undefined && cached.length < last && copies.length < room.copies) {
        copies.push({ from, to: lane, position: cached.length });
        cached.push(sequence[cached.length]!);
      }
      hypothesis.from = undefined;
      while (cached.length <= last && rows.length < room.rows) {
        const position = cached.length;
        const token = sequence[position]!;
        cached.push(token);
        rows.push(position === last ? { lane, position, token, history: tokens } : { lane, position, token });
        hypothesis.asked = position === last;
      }
    }
    return { rows, copies };
  }

  /** Takes the continuations of a lane's hypothesis, best first. Once all hypotheses have theirs, the search advances by a token. */
  take(lane: number, choices: readonly Choice[]): void {
    const hypothesis = this.#live.find((one) => one.lane === lane);
    assert(hypothesis?.asked && !hypothesis.choices, `nobody asked for continuations of lane ${lane}`);
    hypothesis.choices = choices;
    if (this.#live.every((one) => one.choices)) this.#advance();
  }

  /** Whether some transcript is finished; if not, there was no room for its end. */
  get ended(): boolean {
    return this.#finished.length > 0;
  }

  /** The best transcript found. */
  best(): Transcript {
    const found = this.#finished.length > 0 ? this.#finished : this.#live;
    const score = ({ tokens, logprob }: Transcript): number => logprob / (tokens.length + 1);
    return found.reduce((best, one) => (score(one) > score(best) ? one : best));
  }

  #advance(): void {
    const { width, eos, limit } = this.#options;
    const ranked = this.#live
      .flatMap((parent) =>
        parent.choices!.map(({ token, logprob }) => ({ parent, token, own: logprob, logprob: parent.logprob + logprob })),
      )
      .sort((a, b) => b.logprob - a.logprob);
    // The likeliest transcript is empty: others only have a better mean log-probability because they are longer.
    const silent = this.#live[0]!.tokens.length === 0 && ranked[0]?.token === eos;
    const chosen: typeof ranked = [];
    for (const [rank, one] of ranked.entries()) {
      if (one.token !== eos) chosen.push(one);
      else if (rank < width) this.#finished.push({ tokens: one.parent.tokens, logprobs: one.parent.logprobs, logprob: one.logprob });
      if (chosen.length === width) break;
    }
    if (chosen.length > 0) this.#live = this.#place(chosen);
    this.#done = silent || chosen.length === 0 || this.#finished.length >= width || this.#live[0]!.tokens.length >= limit;
  }

  /** Gives each continuation a lane: its parent's, or the free one that shares the longest prefix with it. */
  #place(
    chosen: readonly { readonly parent: Hypothesis; readonly token: number; readonly own: number; readonly logprob: number }[],
  ): Hypothesis[] {
    const free = new Set(this.#cached.keys());
    const lanes = new Map<(typeof chosen)[number], number>();
    for (const one of chosen) if (free.delete(one.parent.lane)) lanes.set(one, one.parent.lane);
    for (const one of chosen) {
      if (lanes.has(one)) continue;
      const wanted = this.#cached[one.parent.lane]!;
      const shared = (lane: number): number => commonPrefix(this.#cached[lane]!, wanted);
      const lane = [...free].reduce((best, other) => (shared(other) > shared(best) ? other : best));
      free.delete(lane);
      lanes.set(one, lane);
    }
    return chosen.map((one) => ({
      lane: lanes.get(one)!, from: one.parent.lane, tokens: [...one.parent.tokens, one.token], logprobs: [...one.parent.logprobs, one.own],
      logprob: one.logprob,
      asked: false, choices: undefined,
    })); // prettier-ignore
  }
}

/** Length of the common prefix of two sequences. */
function commonPrefix(a: readonly number[], b: readonly number[]): number {
  const end = Math.min(a.length, b.length);
  let n = 0;
  while (n < end && a[n] === b[n]) n++;
  return n;
}
