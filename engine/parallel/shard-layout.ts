/** Where the answers of one rank's sampler lie in the words it reads back: the same on every rank, so that the merge can find them. */
import { LOGPROB_WORDS } from '../ops/logits.ts';
import { hasCuts, readInverseTemperature } from '../ops/sampling-row.ts';
import { BEST_WORDS, candidateWords } from '../ops/shard-sample.ts';

/** Candidates a rank lists of a row that is cut. Where more survive, the whole row is exchanged. */
export const SHARD_CANDIDATE_LIMIT = 256;

/** Consecutive tokens whose logits one rank holds. */
export interface VocabularySlice {
  readonly from: number;
  readonly to: number;
}

/** The slice of a rank: whole groups of 32 tokens, a word of a grammar's mask, dealt as evenly as they can be. */
export function vocabularySlice(vocabulary: number, rank: number, ranks: number): VocabularySlice {
  const groups = Math.ceil(vocabulary / 32);
  const end = (index: number): number => Math.min(vocabulary, Math.floor((groups * index) / ranks) * 32);
  return { from: end(rank), to: rank === ranks - 1 ? vocabulary : end(rank + 1) };
}

/** What a step asks of the samplers of all ranks. */
export interface SamplingStep {
  /** Rows that yield tokens, padding included. */
  readonly rows: number;
  /** [rows, SAMPLING_ROW_WORDS], from writeSamplingRow. */
  readonly settings: Uint32Array;
  /** Rows that report log-probabilities, and the most alternatives any of them asks for. */
  readonly reported: ArrayLike<number>;
  readonly top: number;
}

/** The layout of a step: best tokens of all rows, then candidates of the filtered rows, then log-probabilities of the reported ones. */
export class ShardLayout {
  /** Rows that top-k, top-p or another cut shortens; the first `filteredCount` count. */
  readonly filtered: Uint32Array;
  filteredCount = 0;
  /** Every row is greedy. */
  greedy = true;
  /** First word of candidates and of log-probabilities, and all words. */
  candidatesAt = 0;
  logprobsAt = 0;
  words = 0;

  constructor(maxRows: number) {
    this.filtered = new Uint32Array(maxRows);
  }

  /** Words that the largest step of `rows` rows takes. */
  static capacity(rows: number): number {
    return rows * (BEST_WORDS + candidateWords(SHARD_CANDIDATE_LIMIT) + LOGPROB_WORDS);
  }

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
