import { PENALTY_WORDS } from '../ops/logits.ts';
import { SAMPLING_ROW_WORDS } from '../ops/sampling-row.ts';
import { SPAN_WORDS } from '../ops/states.ts';
import { MAX_BIASES, MAX_STOP_TOKENS } from '../sampling.ts';
import { ceilDiv } from '../util/math.ts';

/** Most tokens that `minTokens` bans per row: the request's stop tokens, and the model's end-of-sequence tokens. */
const MAX_BANNED = MAX_STOP_TOKENS + 32;
/** u32 words per entry of `biases`: row, token, bias (f32 bits). */
export const BIAS_WORDS = 3;
/** u32 words per item: first row, row count, block table row, position of the first row. */
export const ITEM_WORDS = 4;
/** u32 words before the pages of a block table change: row, column, page count. */
export const TABLE_HEAD = 3;
/** u32 words before the tokens of a sequence whose token counts start: slot, number of prompt tokens, number of other tokens. */
export const FRESH_HEAD = 3;

/** Limits of one step, which size every buffer of a runner. */
export interface StepLimits {
  /** Rows of the block table: most sequences that run at a time. */
  readonly maxRunning: number;
  readonly prefillChunk: number;
  /** Draft tokens verified in one step: logit rows beyond one per sequence. They count towards `prefillChunk` too. */
  readonly draftRows: number;
  /** Most drafts of the draft head per sequence and step; absent = the model has no draft head. */
  readonly headDrafts?: number;
  /** Columns of the block table: pages of the longest sequence. */
  readonly columns: number;
  /** Prompt rows are multiplied with subgroup matrices, apart from the other rows (scheduler/scheduler.ts, promptsApart). */
  readonly promptsApart?: boolean;
  /** Columns of the scratch of products by LoRA adapters (loraColumns); absent = the model has none. */
  readonly loraColumns?: number | undefined;
  /** The model has sliding-window layers, with a block table and slots of their own. */
  readonly hasWindows: boolean;
  /** Longest sequence in tokens. */
  readonly context: number;
  readonly vocabulary: number;
}

const FIELDS = [
  /** T, padding included; items; how many of the items are decodes, which have one row each and come first. */
  'rows', 'items', 'decodes',
  /** First prompt row that is computed by subgroup matrices; T where there is none. */
  'promptFrom',
  /**
   * Logit rows, padding included; how many of them a sequence wants; 1 = the logit rows are `logitIndices`, 0 = they are the first rows.
   */
  'logitRows', 'sampled', 'gather',
  /** Length of the longest decoding sequence, in tokens; 1 = every row is greedy. */
  'longest', 'greedy',
  /** Words of `table` in use; then one past the highest page, page of sliding-window layers, and recurrent-state slot used so far. */
  'tableWords', 'pages', 'windowPages', 'states',
  /** 1 = some row needs one of the fields below; 1 = some row's logits are changed before sampling. */
  'processed', 'changed',
  /** Entries of `biases`; 1 = `penalties` apply; words of `fresh`; rows of `reported`; the most alternatives that any of them reports. */
  'biases', 'penalized', 'freshWords', 'reported', 'top',
  /** 1 = some row has a LoRA adapter. */
  'hasLora',
  /** Number of this step, and of the latest step whose tokens it reads; both count from 1 (ranks of a split model). */
  'step', 'after',
] as const; // prettier-ignore

export type StepField = (typeof FIELDS)[number];

const INDEX = Object.fromEntries(FIELDS.map((field, i) => [field, i])) as Readonly<Record<StepField, number>>;

/**
 * A batch as plain u32 words, which a device can execute without knowing sequences: batch items, sampling settings, grammar masks and
 * penalties. It lies in one buffer, which threads may share.
 */
export class StepInput {
  /** [T]: a row's token id, or FROM_DEVICE + s for the token that the device has in slot s of the last tokens (Sampler.lastTokens). */
  readonly tokens: Uint32Array;
  readonly positions: Uint32Array;
  readonly slots: Uint32Array;
  /** [T]: place of a row's key and value in the sliding-window layers: page * pageSize + offset, NO_SLOT for padding. */
  readonly windowSlots: Uint32Array;
  /** [T]: 1 + the index of a row's LoRA adapter, 0 for none; empty in models without adapters. */
  readonly loras: Uint32Array;
  /** [items, ITEM_WORDS]. */
  readonly items: Uint32Array;
  /** [items, SPAN_WORDS] (ops/states.ts): recurrent-state slots, in models that have such layers. */
  readonly spans: Uint32Array;
  readonly logitIndices: Uint32Array;
  /** [logitRows, SAMPLING_ROW_WORDS] (ops/sampling-row.ts). */
  readonly sampling: Uint32Array;
  /**
   * Changes of the block table, each as TABLE_HEAD words and then pages. Rows from `maxRunning` on are those of the sliding-window layers'
   * table.
   */
  readonly table: Uint32Array;
  /** [logitRows]: 1 = the row's grammar mask applies; `masks` is [logitRows, ceil(V / 32)], one bit per token. */
  readonly masked: Uint32Array;
  readonly masks: Uint32Array;
  /** [biases, BIAS_WORDS]. */
  readonly biases: Uint32Array;
  /** `penalties` [logitRows, PENALTY_WORDS]; `countedSlots` [logitRows]: the slot whose counts a row's token adds to, or NO_SLOT. */
  readonly penalties: Uint32Array;
  readonly countedSlots: Uint32Array;
  /** Sequences whose token counts start, each as FRESH_HEAD words and then its tokens. */
  readonly fresh: Uint32Array;
  readonly reported: Uint32Array;
  readonly maskWords: number;
  readonly #header: Uint32Array;

  /** Views StepInput.bytes(limits) bytes of a buffer from `byteOffset` on; by default it allocates the buffer. */
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
    this.loras = take(sizes.loras);
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

  /** Bytes of a StepInput with these limits. Memory pages that are never touched cost address space only. */
  static bytes(limits: StepLimits): number {
    return Object.values(sectionSizes(limits)).reduce((sum, words) => sum + words * 4, 0);
  }

  get(field: StepField): number {
    return this.#header[INDEX[field]]!;
  }

  set(field: StepField, value: number): void {
    this.#header[INDEX[field]] = value;
  }

  /** Copies another step into this one, as far as its sections are in use. */
  assign(other: StepInput): void {
    this.#header.set(other.#header);
    const [rows, logitRows] = [this.get('rows'), this.get('logitRows')];
    const copy = (to: Uint32Array, from: Uint32Array, words: number): void => to.set(from.subarray(0, words));
    copy(this.tokens, other.tokens, rows);
    copy(this.positions, other.positions, rows);
    copy(this.slots, other.slots, rows);
    if (this.windowSlots.length > 0) copy(this.windowSlots, other.windowSlots, rows);
    if (this.loras.length > 0) copy(this.loras, other.loras, rows);
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

/**
 * Batch sizes that decode plans are captured for, ascending: powers of two, from 16 on also the sizes halfway between them, and the
 * maximum.
 */
export function decodeBuckets(maxRunning: number): readonly number[] {
  const buckets: number[] = [];
  for (let size = 1; size < maxRunning; size *= 2) buckets.push(size, ...(size >= 16 ? [1.5 * size] : []));
  return [...buckets.filter((size) => size < maxRunning), maxRunning];
}

function sectionSizes({ maxRunning, prefillChunk, draftRows, columns, loraColumns = 0, hasWindows, context, vocabulary }: StepLimits) {
  const rows = maxRunning + prefillChunk;
  const sampled = maxRunning + draftRows;
  return {
    header: FIELDS.length,
    tokens: rows,
    positions: rows,
    slots: rows,
    windowSlots: hasWindows ? rows : 0,
    loras: loraColumns > 0 ? rows : 0,
    // A sequence has at most one chunk per step, and the decodes of a batch are padded to a bucket.
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
