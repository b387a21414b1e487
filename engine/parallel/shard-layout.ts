/** Layout of the words that a rank's sampler reads back. It is the same on every rank, so that the merge can find them. */
import { LOGPROB_WORDS } from '../ops/logits.ts';
import { hasCuts, readInverseTemperature } from '../ops/sampling-row.ts';
import { BEST_WORDS, candidateWords } from '../ops/shard-sample.ts';

/** Most candidates that a rank lists for a row with cuts such as top-p. If more survive, the whole row is exchanged. */
export const SHARD_CANDIDATE_LIMIT = 256;

/** The consecutive tokens whose logits one rank computes. */
export interface VocabularySlice {
  readonly from: number;
  readonly to: number;
}

/** A rank's slice of the vocabulary: whole groups of 32 tokens (a word of a token mask), distributed as evenly as possible. */
export function vocabularySlice(vocabulary: number, rank: number, ranks: number): VocabularySlice {
  const groups = Math.ceil(vocabulary / 32);
  const end = (index: number): number => Math.min(vocabulary, Math.floor((groups * index) / ranks) * 32);
  return { from: end(rank), to: rank === ranks - 1 ? vocabulary : end(rank + 1) };
}

/** What one step samples, the same for all ranks. */
export interface SamplingStep {
  /** Rows with logits, padding included. */
  readonly rows: number;
  /** [rows, SAMPLING_ROW_WORDS], from writeSamplingRow. */
  readonly settings: Uint32Array;
  /** Rows that report log-probabilities; `top` is the most alternatives that any of them asks for. */
  readonly reported: ArrayLike<number>;
  readonly top: number;
}

/** The layout of one step: best tokens of all rows, then candidates of the filtered rows, then log-probabilities of the reported rows. */
export class ShardLayout {
  /** Indices of the rows with top-k, top-p or another cut; the first `filteredCount` entries are valid. */
  readonly filtered: Uint32Array;
  filteredCount = 0;
  /** Whether every row is greedy. */
  greedy = true;
  /** Offsets in words of the candidates and (`logprobsAt`) the log-probabilities; `words` is the total. */
  candidatesAt = 0;
  logprobsAt = 0;
  words = 0;

  constructor(maxRows: number) {
    this.filtered = new Uint32Array(maxRows);
  }

  /** Most words that a step of `rows` rows can take. */
  static capacity(rows: number): number {
    return rows * (BEST_WORDS + candidateWords(SHARD_CANDIDATE_LIMIT) + LOGPROB_WORDS);
  }

  /** Lays out a step. */
  update({ rows, settings, reported }: SamplingStep): void {
    this.filteredCount = 0;
    this.greedy = true;
    for (let row = 0; row < rows; row++) {
      if (readInverseTemperature(settings, row) === 0) continue;
      this.greedy = false;
      if (hasCuts(settings, row)) this.filtered[this.filteredCount++] = row;
    }
    this.candidatesAt = rows * BEST_WORDS;
    this.logprobsAt = this.candidatesAt + this.filteredCount * candidateWords(SHARD_CANDIDATE_LIMIT);
    this.words = this.logprobsAt + reported.length * LOGPROB_WORDS;
  }
}
