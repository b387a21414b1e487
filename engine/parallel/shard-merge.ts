/** Merges what the ranks' samplers (shard-sampler.ts) found in their slices of the vocabulary into one token per row. */
import { assert } from '../errors.ts';
import { LOGPROB_WORDS } from '../ops/logits.ts';
import { readCuts, readInverseTemperature } from '../ops/sampling-row.ts';
import { BEST_WORDS, CANDIDATE_HEAD, CANDIDATE_WORDS, candidateWords } from '../ops/shard-sample.ts';
import { CUT_NAMES, samplingField } from '../sampling.ts';
import { nextPowerOfTwo } from '../util/math.ts';
import { SHARD_CANDIDATE_LIMIT, ShardLayout } from './shard-layout.ts';
import type { SamplingStep, VocabularySlice } from './shard-layout.ts';

/** Value of masked logits; tokens with this or less are never drawn. */
const LOWEST = Math.fround(-3.4e38);

/** Log-probabilities of one sampled token over the whole vocabulary. */
export interface ShardLogprobs {
  readonly row: number;
  readonly logprob: number;
  /** The likeliest tokens, best first; of equal ones the smaller id first. */
  readonly top: readonly { readonly token: number; readonly logprob: number }[];
}

/** What one rank's sampler read back, as u32 and f32. */
export interface ShardWords {
  readonly words: Uint32Array;
  readonly floats: Float32Array;
}

/** Makes both views of a buffer. */
export function shardWords(buffer: ArrayBufferLike, byteOffset = 0): ShardWords {
  return { words: new Uint32Array(buffer, byteOffset), floats: new Float32Array(buffer, byteOffset) };
}

/** Candidates of one row from all ranks together: tokens that may survive its cuts. Grows to the largest row seen, and is reused. */
interface Candidates {
  readonly token: Uint32Array;
  readonly logit: Float32Array;
  readonly perturbed: Float32Array;
  readonly unprocessed: Float32Array;
  /** Sort keys, in which larger logits come first, with the index in the low bits; sorted without a comparator. */
  readonly keys: Float64Array;
}

const INDEX_RANGE = 2 ** 21;

export class ShardMerge {
  readonly #slices: readonly VocabularySlice[];
  readonly #vocabulary: number;
  readonly #layout: ShardLayout;
  /** Rank that holds a row's token; `#logit` is the token's unprocessed logit, for filtered rows only. */
  readonly #winner: Uint8Array;
  readonly #logit: Float32Array;
  #candidates = allocateCandidates(0);
  /** Tokens of the last merge, by row. */
  readonly tokens: Uint32Array;
  /** Rows whose candidate lists were too short, which mergeWhole() settles; the first `unresolvedCount` entries are valid. */
  readonly unresolved: Uint32Array;
  unresolvedCount = 0;

  /** `slices` are by rank, in ascending order; `maxRows` is the same as for the samplers. */
  constructor(slices: readonly VocabularySlice[], maxRows: number) {
    this.#slices = slices;
    this.#vocabulary = Math.max(...slices.map(({ to }) => to));
    assert(this.#vocabulary < INDEX_RANGE, `a vocabulary of ${this.#vocabulary} tokens`);
    this.#layout = new ShardLayout(maxRows);
    this.#winner = new Uint8Array(maxRows);
    this.#logit = new Float32Array(maxRows);
    this.tokens = new Uint32Array(maxRows);
    this.unresolved = new Uint32Array(maxRows);
  }

  /** Fills `tokens` from the words that each rank read back, in rank order; returns the number of unresolved rows. */
  merge(step: SamplingStep, perRank: readonly ShardWords[]): number {
    const layout = this.#layout;
    layout.update(step);
    this.unresolvedCount = 0;
    for (let row = 0; row < step.rows; row++) this.#best(row, perRank);
    for (let i = 0; i < layout.filteredCount; i++) {
      const at = layout.candidatesAt + i * candidateWords(SHARD_CANDIDATE_LIMIT);
      const row = layout.filtered[i]!;
      if (!this.#draw(step, row, perRank, at, SHARD_CANDIDATE_LIMIT)) this.unresolved[this.unresolvedCount++] = row;
    }
    return this.unresolvedCount;
  }

  /** Settles one unresolved row from the ranks' whole lists (ShardSampler.recordWhole). */
  mergeWhole(step: SamplingStep, row: number, perRank: readonly ShardWords[]): void {
    const decided = this.#draw(step, row, perRank, 0, this.#vocabulary);
    assert(decided, `row ${row} is undecided although all its tokens are listed`);
  }

  /** Log-probabilities of the reported rows, after every row is settled. */
  logprobs({ reported, top }: SamplingStep, perRank: readonly ShardWords[]): ShardLogprobs[] {
    const { logprobsAt, filtered, filteredCount } = this.#layout;
    const cut = new Set(filtered.subarray(0, filteredCount));
    return Array.from(reported, (row, i) => {
      const at = logprobsAt + i * LOGPROB_WORDS;
      const largest = Math.max(...perRank.map(({ floats }) => floats[at]!));
      const logSumExp = largest + Math.log(perRank.reduce((sum, { floats }) => sum + Math.exp(floats[at]! - largest), 0));
      const logit = cut.has(row) ? this.#logit[row]! : perRank[this.#winner[row]!]!.floats[at + 1]!;
      return { row, logprob: logit - logSumExp, top: this.#top(perRank, at, top, logSumExp) };
    });
  }

  #top(perRank: readonly ShardWords[], at: number, count: number, logSumExp: number): ShardLogprobs['top'] {
    const all = perRank.flatMap(({ words, floats }, rank) =>
      Array.from({ length: count }, (_, j) => ({ rank, token: words[at + 2 + 2 * j]!, logit: floats[at + 3 + 2 * j]! })),
    );
    const known = all.filter(({ logit }) => logit > LOWEST);
    known.sort((a, b) => b.logit - a.logit || a.rank - b.rank || a.token - b.token);
    return known.slice(0, count).map(({ rank, token, logit }) => ({ token: this.#slices[rank]!.from + token, logprob: logit - logSumExp }));
  }

  /** The row's best token over the ranks; their slices ascend, so ties go to the smaller token. */
  #best(row: number, perRank: readonly ShardWords[]): void {
    let top = LOWEST;
    this.tokens[row] = 0;
    this.#winner[row] = 0;
    for (let rank = 0; rank < perRank.length; rank++) {
      const value = perRank[rank]!.floats[row * BEST_WORDS]!;
      if (!(value > top)) continue;
      top = value;
      this.tokens[row] = perRank[rank]!.words[row * BEST_WORDS + 1]!;
      this.#winner[row] = rank;
    }
  }

  /**
   * Draws a filtered row's token from the ranks' lists at word `at`: top-k, then top-p, then the cuts with a floor over the whole vocabulary as
   * sample_threshold.wgsl does them, then the largest perturbed logit among what is left. False when the cut lies below what a list holds.
   */
  #draw({ settings }: SamplingStep, row: number, perRank: readonly ShardWords[], at: number, capacity: number): boolean {
    const inverseTemperature = readInverseTemperature(settings, row);
    const cuts = readCuts(settings, row);
    const { topK, topP } = cuts;
    let floor = LOWEST;
    let top = LOWEST;
    for (const { words, floats: head } of perRank) {
      if (words[at]! > capacity) return false;
      top = Math.max(top, head[at + 1]!);
      floor = Math.max(floor, head[at + 3]!);
    }
    const count = this.#gather(perRank, at);
    const { keys, logit } = this.#candidates;
    const weight = (value: number): number => Math.exp((value - top) * inverseTemperature);
    const sorted = (index: number): number => logit[keys[index]! % INDEX_RANGE]!;
    // The lists hold every token at or above `floor`: a cut found there is exact, one below may not be.
    let least = LOWEST;
    let kept = count;
    const byCount = topK > 0 && topK < this.#vocabulary;
    if (byCount && topK <= count) {
      least = sorted(topK - 1);
      for (kept = topK; kept < count && sorted(kept) === least;) kept++;
    }
    if (topP < 1) {
      if (byCount && least < floor) return false;
      let total = 0;
      if (byCount) for (let i = 0; i < kept; i++) total += weight(sorted(i));
      else for (const { floats: head } of perRank) total += head[at + 2]! * weight(head[at + 1]!);
      let sum = 0;
      for (let i = 0; i < kept; i++) {
        sum += weight(sorted(i));
        if (sum < topP * total) continue;
        least = sorted(i);
        break;
      }
    }
    for (const name of CUT_NAMES) {
      const { floor: floorOf, wholeRow, default: off } = samplingField(name);
      if (!floorOf || cuts[name] === off) continue;
      if (wholeRow && floor > LOWEST) return false;
      const logits = this.#candidates.logit.subarray(0, count);
      least = Math.max(least, Math.fround(floorOf(cuts[name], { top, inverseTemperature, logits })));
    }
    if (least < floor) return false;
    this.#pick(row, count, least);
    return true;
  }

  /** Copies the ranks' lists of one row into one, sorts it by logit, and returns its length. */
  #gather(perRank: readonly ShardWords[], at: number): number {
    const count = perRank.reduce((sum, { words }) => sum + words[at]!, 0);
    if (count > this.#candidates.token.length) this.#candidates = allocateCandidates(nextPowerOfTwo(count));
    const { token, logit, perturbed, unprocessed, keys } = this.#candidates;
    let i = 0;
    for (const { words, floats } of perRank) {
      for (let entry = at + CANDIDATE_HEAD, end = entry + words[at]! * CANDIDATE_WORDS; entry < end; entry += CANDIDATE_WORDS) {
        token[i] = words[entry]!;
        logit[i] = floats[entry + 1]!;
        perturbed[i] = floats[entry + 2]!;
        unprocessed[i] = floats[entry + 3]!;
        keys[i] = descendingKey(words[entry + 1]!) * INDEX_RANGE + i;
        i++;
      }
    }
    keys.subarray(0, count).sort();
    return count;
  }

  /** The largest perturbed logit among those at or above `least`, ties to the smaller token; 0 when there is none. */
  #pick(row: number, count: number, least: number): void {
    const { token, logit, perturbed, unprocessed } = this.#candidates;
    let best = -1;
    for (let i = 0; i < count; i++) {
      if (!(logit[i]! >= least)) continue;
      if (best < 0 || perturbed[i]! > perturbed[best]! || (perturbed[i] === perturbed[best] && token[i]! < token[best]!)) best = i;
    }
    this.tokens[row] = best < 0 ? 0 : token[best]!;
    this.#logit[row] = best < 0 ? LOWEST : unprocessed[best]!;
  }
}

/** Maps the bits of a float to an integer such that larger floats give smaller integers. */
function descendingKey(bits: number): number {
  return (bits & 0x80000000) !== 0 ? bits : 0x7fffffff - bits;
}

function allocateCandidates(capacity: number): Candidates {
  return {
    token: new Uint32Array(capacity),
    logit: new Float32Array(capacity),
    perturbed: new Float32Array(capacity),
    unprocessed: new Float32Array(capacity),
    keys: new Float64Array(capacity),
  };
}
