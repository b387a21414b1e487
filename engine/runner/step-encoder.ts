import type { BlockTable, DirtyRange } from '../cache/block-table.ts';
import { assert } from '../errors.ts';
import { NO_SLOT } from '../ops/kv.ts';
import { FROM_DEVICE } from '../ops/sample.ts';
import { writeSamplingRow } from '../ops/sampling-row.ts';
import { SPAN_WORDS, writeSpan } from '../ops/states.ts';
import { GREEDY_SAMPLING } from '../sampling.ts';
import { FROM_HEAD, isOfPrompt } from '../scheduler/batch.ts';
import type { Batch, BatchItem, SampledRow } from '../scheduler/batch.ts';
import { draftSlot } from './head-steps.ts';
import type { HeadLimits } from './head-steps.ts';
import { LogitEncoder } from './logit-encoder.ts';
import { ITEM_WORDS, TABLE_HEAD, decodeBuckets } from './step-input.ts';
import type { StepInput, StepLimits } from './step-input.ts';

/** Encodes batches as StepInputs. It needs no GPU, and one encoder serves all ranks of a split model. */
export class StepEncoder {
  readonly #table: BlockTable;
  readonly #pageSize: number;
  readonly #maxRunning: number;
  readonly #promptsApart: boolean;
  readonly #hasLoras: boolean;
  readonly #buckets: readonly number[];
  readonly #logits: LogitEncoder;
  readonly #drafting: Pick<HeadLimits, 'maxRunning' | 'headDrafts'>;
  /** Highest page number used so far, plus one: the pool hands out low pages first. */
  #pages = 0;
  /** Highest page number of sliding-window layers used so far, plus one. */
  #windowPages = 0;
  /** Highest recurrent-state slot used so far, plus one. */
  #states = 0;

  constructor(table: BlockTable, pageSize: number, limits: StepLimits) {
    this.#table = table;
    this.#pageSize = pageSize;
    this.#maxRunning = limits.maxRunning;
    this.#promptsApart = limits.promptsApart === true;
    this.#hasLoras = (limits.loraColumns ?? 0) > 0;
    this.#drafting = { maxRunning: limits.maxRunning, headDrafts: limits.headDrafts ?? 0 };
    this.#buckets = decodeBuckets(limits.maxRunning);
    this.#logits = new LogitEncoder();
  }

  /** Writes a batch into `input`. Decode-only batches are padded to a bucket, with rows that store nothing. */
  encode({ decodes, prefills, sampled }: Batch, input: StepInput): void {
    const decodeOnly = prefills.length === 0;
    const computed = decodes.length + prefills.reduce((sum, { count }) => sum + count, 0);
    const rows = decodeOnly ? this.#buckets.find((size) => size >= computed)! : computed;
    this.#encodeTable(input);
    this.#encodeRows(decodes, prefills, rows, input);
    input.set('rows', rows);
    input.set('hasLora', [...decodes, ...prefills].some(({ sequence }) => sequence.lora > 0) ? 1 : 0);
    // With `promptsApart`, prompt rows come last in a batch.
    const ofPrompts = this.#promptsApart ? prefills.reduce((sum, item) => sum + (isOfPrompt(item) ? item.count : 0), 0) : 0;
    input.set('promptFrom', rows - ofPrompts);
    input.set('decodes', decodeOnly ? rows : decodes.length);
    input.set('items', decodeOnly ? rows : decodes.length + prefills.length);
    const logitRows = decodeOnly ? rows : sampled.length;
    input.set('logitRows', logitRows);
    input.set('sampled', sampled.length);
    input.set('gather', decodeOnly ? 0 : 1);
    input.set('longest', decodes.reduce((most, { start }) => Math.max(most, start + 1), 0)); // prettier-ignore
    this.#encodeSampling(sampled, logitRows, input);
    this.#logits.encode(sampled, logitRows, input);
  }

  /** Encodes `maxRunning` rows of padding, for warming up. */
  encodeNothing(input: StepInput): void {
    this.#encodeRows([], [], this.#maxRunning, input);
    this.#encodeSampling([], this.#maxRunning, input);
  }

  #encodeTable(input: StepInput): void {
    const { windows, rows } = this.#table;
    let at = 0;
    const put = ({ row, from, pages }: DirtyRange, firstRow: number, used: number): number => {
      input.table.set([firstRow + row, from, pages.length], at);
      input.table.set(pages, at + TABLE_HEAD);
      at += TABLE_HEAD + pages.length;
      return pages.reduce((most, page) => Math.max(most, page + 1), used);
    };
    for (const range of this.#table.takeDirty()) this.#pages = put(range, 0, this.#pages);
    for (const range of windows?.takeDirty() ?? []) this.#windowPages = put(range, rows, this.#windowPages);
    input.set('tableWords', at);
    input.set('pages', this.#pages);
    input.set('windowPages', this.#windowPages);
  }

  #encodeRows(decodes: readonly BatchItem[], prefills: readonly BatchItem[], rows: number, input: StepInput): void {
    const { tokens, positions, slots, windowSlots, loras, items, spans, logitIndices } = input;
    const pageSize = this.#pageSize;
    const hasWindows = this.#table.windows !== undefined;
    let row = 0;
    let item = 0;
    let sampled = 0;
    const put = ({ sequence, start, count, samples, fromDevice, drafts, state }: BatchItem): void => {
      if (state) writeSpan(spans, item, { first: row, rows: count, ...state });
      if (state) this.#states = Math.max(this.#states, state.write + 1, (state.keep?.slot ?? 0) + 1, (state.certain?.slot ?? 0) + 1);
      items.set([row, count, sequence.row, start], item++ * ITEM_WORDS);
      for (let position = start; position < start + count; position++) {
        // Drafts lie behind the known tokens, and behind the one that only the device knows.
        const known = fromDevice && position === start ? FROM_DEVICE + sequence.row : sequence.tokens[position];
        tokens[row] = known ?? this.#drafted(sequence.row, drafts, position - start - count + drafts.length);
        positions[row] = position;
        if (this.#hasLoras) loras[row] = sequence.lora;
        const index = Math.floor(position / pageSize);
        slots[row] = sequence.pages[index]! * pageSize + (position % pageSize);
        if (hasWindows) windowSlots[row] = sequence.windows[index - sequence.firstWindow]! * pageSize + (position % pageSize);
        row++;
      }
      for (let i = row - samples; i < row; i++) logitIndices[sampled++] = i;
    };
    for (const decode of decodes) put(decode);
    for (const prefill of prefills) put(prefill);
    for (; row < rows; row++) {
      [tokens[row], positions[row], slots[row]] = [0, 0, NO_SLOT];
      if (hasWindows) windowSlots[row] = NO_SLOT;
      if (this.#hasLoras) loras[row] = 0;
      spans.fill(0, item * SPAN_WORDS, (item + 1) * SPAN_WORDS);
      items.fill(0, item * ITEM_WORDS, ++item * ITEM_WORDS);
    }
    assert(row === rows, `${row} rows in a batch of ${rows}`);
    input.set('states', this.#states);
  }

  /** A draft's token id, or FROM_DEVICE plus the slot where the draft head leaves it. */
  #drafted(row: number, drafts: readonly number[], index: number): number {
    const draft = drafts[index]!;
    return draft === FROM_HEAD ? FROM_DEVICE + draftSlot(this.#drafting, row, index) : draft;
  }

  /** Writes the sampling settings of `rows` logit rows; those of padding are greedy. */
  #encodeSampling(sampled: readonly SampledRow[], rows: number, input: StepInput): void {
    let greedy = true;
    for (let i = 0; i < rows; i++) {
      const sequence = sampled[i]?.sequence;
      const sampling = sequence?.sampling ?? GREEDY_SAMPLING;
      writeSamplingRow(input.sampling, i, {
        ...sampling,
        choice: sequence?.choice ?? 0,
        position: sampled[i]?.position ?? 0,
        // How many drafts are accepted, and so which token is the last one, is decided on the host.
        slot: sequence && !sequence.verifying ? sequence.row : this.#maxRunning,
      });
      if (sampling.temperature > 0) greedy = false;
    }
    input.set('greedy', greedy ? 1 : 0);
  }
}
