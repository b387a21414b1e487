/**
 * Beam search over one transcript: the `width` likeliest beginnings are carried on side by side, so that a token chosen too early can be taken back
 * when what follows makes it unlikely. As in OpenAI's Whisper the search ends with `width` finished transcripts and takes the one with the best
 * mean log-probability; as in transformers a transcript finishes only by an end that is among the `width` best continuations.
 *
 * Each hypothesis has a lane: a sequence of the decoder's cache. Where several are continuations of one, one stays in its lane and the others move
 * to lanes that are free: keys and values in which the two lanes differ, mostly those of the last few tokens, are copied.
 */
import { assert } from '../errors.ts';

/** A token that could follow. */
export interface Choice {
  readonly token: number;
  readonly logprob: number;
}

/** One token to feed. */
export interface BeamRow {
  readonly lane: number;
  /** In prompt and transcript together. */
  readonly position: number;
  readonly token: number;
  /** The transcript's tokens so far, on the last row of a lane: its best continuations are wanted, `width + 1` at least. */
  readonly history?: readonly number[];
}

/** The key and value of one token, to be copied between lanes before rows are fed. */
export interface BeamCopy {
  readonly from: number;
  readonly to: number;
  readonly position: number;
}

/** A transcript without its end, and the log-probability of all its tokens. */
export interface Transcript {
  readonly tokens: readonly number[];
  /** Of each of the tokens, and of all of them with the end. */
  readonly logprobs: readonly number[];
  readonly logprob: number;
}

interface Hypothesis extends Transcript {
  readonly lane: number;
  /** The lane it comes from, as long as its own does not hold what it continues. */
  from: number | undefined;
  asked: boolean;
  choices: readonly Choice[] | undefined;
}

export interface BeamSearchOptions {
  readonly width: number;
  readonly prompt: readonly number[];
  readonly eos: number;
  /** Tokens a transcript may have. */
  readonly limit: number;
}

export class BeamSearch {
  readonly #options: BeamSearchOptions;
  /** Tokens whose keys and values each lane holds. */
  readonly #cached: number[][];
  readonly #finished: Transcript[] = [];
  #live: Hypothesis[];
  #done = false;

  constructor(options: BeamSearchOptions) {
    this.#options = options;
    this.#cached = Array.from({ length: options.width }, () => []);
    this.#live = [{ lane: 0, from: undefined, tokens: [], logprobs: [], logprob: 0, asked: false, choices: undefined }];
  }

  get done(): boolean {
    return this.#done;
  }

  /** The next rows to feed, in order of position within a lane, after the copies, both no more than there is room for; none while choices are awaited. */
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
      // The last token is always fed: its continuations are wanted.
      const last = sequence.length - 1;
      cached.length = Math.min(commonPrefix(cached, sequence), last);
      // The lane it comes from holds all but the last token. What there is no room to copy is fed again.
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

  /** The continuations of a lane's hypothesis, best first. When all have theirs, the best of all are carried on. */
  take(lane: number, choices: readonly Choice[]): void {
    const hypothesis = this.#live.find((one) => one.lane === lane);
    assert(hypothesis?.asked && !hypothesis.choices, `nobody asked for continuations of lane ${lane}`);
    hypothesis.choices = choices;
    if (this.#live.every((one) => one.choices)) this.#advance();
  }

  /** The best transcript has its end; else there was no room for it. */
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
    // Nothing is said: another transcript's mean log-probability only looks better because it is longer.
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

  /** Gives each continuation a lane: its parent's, or the free one that has most of its tokens. */
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

/** How many tokens two sequences begin with alike. */
function commonPrefix(a: readonly number[], b: readonly number[]): number {
  const end = Math.min(a.length, b.length);
  let n = 0;
  while (n < end && a[n] === b[n]) n++;
  return n;
}
