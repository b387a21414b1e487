import { PENALTY_WORDS } from '../ops/logits.ts';
import { SAMPLING_ROW_WORDS } from '../ops/sampling-row.ts';
import { SPAN_WORDS } from '../ops/states.ts';
import { MAX_BIASES, MAX_STOP_TOKENS } from '../sampling.ts';
import { ceilDiv } from '../util/math.ts';

/** Tokens that `minTokens` may ban: those of the request, and the model's own ends of sequence. */
const MAX_BANNED = MAX_STOP_TOKENS + 32;
/** Words of an entry of `biases`: row, token, bias (f32). */
export const BIAS_WORDS = 3;
/** Words of an item: first row, rows, row of the block table, position of the first row. */
export const ITEM_WORDS = 4;
/** Words before the pages of a change of the block table: row, column, pages. */
export const TABLE_HEAD = 3;
/** Words before the tokens of a sequence whose counts start: slot, prompt tokens, other tokens. */
export const FRESH_HEAD = 3;

/** The largest step. */
export interface StepLimits {
  /** Rows of the block table: sequences at a time. */
  readonly maxRunning: number;
  readonly prefillChunk: number;
  /** Guesses verified in one step: rows that yield tokens beside one a sequence; they count as prompt tokens too. */
  readonly draftRows: number;
  /** Guesses of the model's head for a sequence in one step at most; absent = it has none. */
  readonly headDrafts?: number;
  /** Columns of the block table: pages of the longest sequence. */
  readonly columns: number;
  /** Prompts take subgroup matrices (scheduler/scheduler.ts, promptsApart). */
  readonly promptsApart?: boolean;
  /** Some layers see a window only, and have a block table and slots of their own. */
  readonly hasWindows: boolean;
  /** Longest sequence in tokens. */
  readonly context: number;
  readonly vocabulary: number;
}

const FIELDS = [
  /** T, padding included; items, and how many of those are decodes (one row each, first). */
  'rows', 'items', 'decodes',
  /** The first row of a prompt that is computed apart from answers: T where there is none. */
  'promptFrom',
  /** Rows that give logits, padding included, and how many of those a sequence wants; 1 = they are those of `logitIndices`, 0 = the first. */
  'logitRows', 'sampled', 'gather',
  /** Length of the longest decoding sequence; 1 = every row takes the largest logit. */
  'longest', 'greedy',
  /** Words of `table` in use; pages, those of layers that see a window only, and slots for states, that this and earlier steps use: the first ones. */
  'tableWords', 'pages', 'windowPages', 'states',
  /** 1 = some row asks for what follows; 1 = some row's logits are changed before sampling. */
  'processed', 'changed',
  /** Entries of `biases`; 1 = `penalties` hold; words of `fresh`; rows of `reported` and the most alternatives any of them wants. */
  'biases', 'penalized', 'freshWords', 'reported', 'top',
  /** Number of the step, and of the latest one whose tokens it needs (both from 1; ranks of a split model). */
  'step', 'after',
] as const; // prettier-ignore

export type StepField = (typeof FIELDS)[number];

const INDEX = Object.fromEntries(FIELDS.map((field, i) => [field, i])) as Readonly<Record<StepField, number>>;

/**
 * A batch as plain words, which any device can execute without knowing a sequence: what BatchItems, sampling settings, grammar masks and
 * penalties come down to. It lies in one buffer, which threads may share.
 */
export class StepInput {
  /** Of each row: token, or FROM_DEVICE + slot for the last one sampled there; position; place of its key and value. */
  readonly tokens: Uint32Array;
  readonly positions: Uint32Array;
  readonly slots: Uint32Array;
  /** The last of these in layers that see a window only. */
  readonly windowSlots: Uint32Array;
  /** [items, ITEM_WORDS]. */
  readonly items: Uint32Array;
  /** [items, SPAN_WORDS], of models with recurrent layers (ops/states.ts). */
  readonly spans: Uint32Array;
  readonly logitIndices: Uint32Array;
  /** [logitRows, SAMPLING_ROW_WORDS] (ops/sampling-row.ts). */
  readonly sampling: Uint32Array;
  /** Changes of the block table: TABLE_HEAD words, then pages. Rows of the windows' table come behind the others'. */
  readonly table: Uint32Array;
  /** [logitRows]: 1 = the row of `masks` [logitRows, ceil(V / 32)] holds. */
  readonly masked: Uint32Array;
  readonly masks: Uint32Array;
  /** [biases, BIAS_WORDS]. */
  readonly biases: Uint32Array;
  /** [logitRows, PENALTY_WORDS], and the slot each row's token is counted in, or NO_SLOT. */
  readonly penalties: Uint32Array;
  readonly countedSlots: Uint32Array;
  /** Sequences whose counts start: FRESH_HEAD words, then tokens. */
  readonly fresh: Uint32Array;
  readonly reported: Uint32Array;
  readonly maskWords: number;
  readonly #header: Uint32Array;

  /** Takes StepInput.bytes(limits) bytes from `byteOffset` of a buffer, by default a new one. */
  constructor(limits: StepLimits, buffer: ArrayBufferLike = new ArrayBuffer(StepInput.bytes(limits)), byteOffset = 0) {
    const sizes = sectionSizes(limits);
    let at = byteOffset;
    const take = (words: number): Uint32Array => {
      const section = new Uint32Array(buffer, at, words);
      at += words * 4;
      return section;
    };
    this.#header = take(sizes.header);
    this.tokens = take(sizes.tokens);
    this.positions = take(sizes.positions);
    this.slots = take(sizes.slots);
    this.windowSlots = take(sizes.windowSlots);
    this.items = take(sizes.items);
    this.spans = take(sizes.spans);
    this.logitIndices = take(sizes.logitIndices);
    this.sampling = take(sizes.sampling);
    this.table = take(sizes.table);
    this.masked = take(sizes.masked);
    this.masks = take(sizes.masks);
    this.biases = take(sizes.biases);
    this.penalties = take(sizes.penalties);
    this.countedSlots = take(sizes.countedSlots);
    this.fresh = take(sizes.fresh);
    this.reported = take(sizes.reported);
    this.maskWords = ceilDiv(limits.vocabulary, 32);
  }

  /** Bytes of a step of at most this size; pages that are never touched cost address space only. */
  static bytes(limits: StepLimits): number {
    return Object.values(sectionSizes(limits)).reduce((sum, words) => sum + words * 4, 0);
  }

  get(field: StepField): number {
    return this.#header[INDEX[field]]!;
  }

  set(field: StepField, value: number): void {
    this.#header[INDEX[field]] = value;
  }

  /** Takes over another step: what of it is in use. */
  assign(other: StepInput): void {
    this.#header.set(other.#header);
    const [rows, logitRows] = [this.get('rows'), this.get('logitRows')];
    const copy = (to: Uint32Array, from: Uint32Array, words: number): void => to.set(from.subarray(0, words));
    copy(this.tokens, other.tokens, rows);
    copy(this.positions, other.positions, rows);
    copy(this.slots, other.slots, rows);
    if (this.windowSlots.length > 0) copy(this.windowSlots, other.windowSlots, rows);
    copy(this.items, other.items, this.get('items') * ITEM_WORDS);
    copy(this.spans, other.spans, this.get('items') * SPAN_WORDS);
    copy(this.logitIndices, other.logitIndices, logitRows);
    copy(this.sampling, other.sampling, logitRows * SAMPLING_ROW_WORDS);
    copy(this.table, other.table, this.get('tableWords'));
    if (this.get('processed') === 0) return;
    copy(this.masked, other.masked, logitRows);
    copy(this.masks, other.masks, logitRows * this.maskWords);
    copy(this.biases, other.biases, this.get('biases') * BIAS_WORDS);
    copy(this.penalties, other.penalties, logitRows * PENALTY_WORDS);
    copy(this.countedSlots, other.countedSlots, logitRows);
    copy(this.fresh, other.fresh, this.get('freshWords'));
    copy(this.reported, other.reported, this.get('reported'));
  }
}

/** Rows of decode batches that plans are captured for: powers of two, beyond 16 also what lies between them, and the maximum. */
export function decodeBuckets(maxRunning: number): readonly number[] {
  const buckets: number[] = [];
  for (let size = 1; size < maxRunning; size *= 2) buckets.push(size, ...(size >= 16 ? [1.5 * size] : []));
  return [...buckets.filter((size) => size < maxRunning), maxRunning];
}

function sectionSizes({ maxRunning, prefillChunk, draftRows, columns, hasWindows, context, vocabulary }: StepLimits) {
  const rows = maxRunning + prefillChunk;
  const sampled = maxRunning + draftRows;
  return {
    header: FIELDS.length,
    tokens: rows,
    positions: rows,
    slots: rows,
    windowSlots: hasWindows ? rows : 0,
    // A sequence has at most one chunk a step, and the decodes of a batch are padded to a bucket.
    items: 2 * maxRunning * ITEM_WORDS,
    spans: 2 * maxRunning * SPAN_WORDS,
    logitIndices: sampled,
    sampling: sampled * SAMPLING_ROW_WORDS,
    table: (hasWindows ? 2 : 1) * maxRunning * (TABLE_HEAD + columns),
    masked: sampled,
    masks: sampled * ceilDiv(vocabulary, 32),
    biases: sampled * (MAX_BIASES + MAX_BANNED) * BIAS_WORDS,
    penalties: sampled * PENALTY_WORDS,
    countedSlots: sampled,
    fresh: maxRunning * (FRESH_HEAD + context),
    reported: sampled,
  };
}
