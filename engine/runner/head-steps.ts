/**
 * Inputs of the draft head (models/layers/draft-head.ts) for each batch. They are uploaded to one device, since a split model has no draft
 * head.
 */
import { assert } from '../errors.ts';
import type { Device } from '../gpu/device.ts';
import type { Tensor } from '../gpu/tensor.ts';
import type { DraftInput } from '../models/decoder.ts';
import type { FollowInput, ForwardInput } from '../models/forward-input.ts';
import { firstFinal } from '../models/layers/stack-stages.ts';
import { NO_SLOT } from '../ops/kv.ts';
import { FROM_DEVICE } from '../ops/sample.ts';
import { SAMPLING_ROW_WORDS, writeSamplingRow } from '../ops/sampling-row.ts';
import { GREEDY_SAMPLING } from '../sampling.ts';
import { FROM_HEAD } from '../scheduler/batch.ts';
import type { Batch, BatchItem } from '../scheduler/batch.ts';
import type { Sequence } from '../scheduler/sequence.ts';
import { ITEM_WORDS, decodeBuckets } from './step-input.ts';

/** Most running sequences, most prompt tokens per step, and most drafts per sequence and step. */
export interface HeadLimits {
  readonly maxRunning: number;
  readonly prefillChunk: number;
  readonly headDrafts: number;
}

/** Slot in Sampler.lastTokens where the draft head leaves guess number `index` for the sequence in block table row `row`. */
export function draftSlot({ maxRunning, headDrafts }: Pick<HeadLimits, 'maxRunning' | 'headDrafts'>, row: number, index: number): number {
  return maxRunning + 1 + row * headDrafts + index;
}

/**
 * Number of hidden states kept from step to step: for each sequence those of the positions that its last step sampled at, and one more that
 * padding writes to.
 */
export function keptStates({ maxRunning, headDrafts = 0 }: Pick<HeadLimits, 'maxRunning'> & Partial<HeadLimits>): number {
  return headDrafts > 0 ? maxRunning * (1 + headDrafts) + 1 : 0;
}

/** Hidden states kept for one block table row: of positions [first, first + count) of a sequence. */
interface Kept {
  readonly sequence: Sequence;
  readonly first: number;
  readonly count: number;
}

/** Inputs of one pass of the draft head: round i guesses the i-th draft of each sequence. */
interface Round {
  readonly positions: Tensor;
  readonly slots: Tensor;
  readonly tiles: Tensor;
  readonly settings: Tensor;
}

/** The tensors that the draft head's passes read, written for each batch. */
export class HeadSteps {
  /**
   * [B] u32: `tokens` has the last token of each sequence, unresolved; `ids` has it resolved, and after each round that round's guesses.
   */
  readonly tokens: Tensor;
  readonly ids: Tensor;
  /** Of the batch uploaded last: rounds of guesses, rows of each (padding included), and the longest sequence among them. */
  rounds = 0;
  rows = 0;
  longest = 0;
  readonly #device: Device;
  readonly #limits: HeadLimits;
  readonly #pageSize: number;
  readonly #buckets: readonly number[];
  readonly #follow: Omit<FollowInput, 'copies'>;
  readonly #hidden: Tensor;
  readonly #rounds: readonly Round[];
  /** Kept hidden states by block table row. */
  readonly #kept = new Map<number, Kept>();
  #copies = 0;

  constructor(device: Device, limits: HeadLimits, pageSize: number) {
    const { maxRunning, prefillChunk, headDrafts } = limits;
    const rows = maxRunning + prefillChunk;
    const make = (name: string, shape: readonly number[]): Tensor => device.tensor(name, 'u32', shape);
    const makeSlots = (name: string, count: number): Tensor => device.upload(name, 'u32', [count], new Uint32Array(count).fill(NO_SLOT));
    this.#device = device;
    this.#limits = limits;
    this.#pageSize = pageSize;
    this.#buckets = decodeBuckets(maxRunning);
    this.#follow = {
      previous: make('hidden before', [rows]),
      positions: make('positions before', [rows]),
      slots: makeSlots('slots before', rows),
      // A sequence has one item per step, and decodes are padded.
      pairs: make('kept rows', [2 * maxRunning * (1 + headDrafts), 2]),
    };
    this.tokens = make('tokens to guess from', [maxRunning]);
    this.ids = make('ids to guess from', [maxRunning]);
    this.#hidden = make('hidden to guess from', [maxRunning]);
    this.#rounds = Array.from({ length: headDrafts }, (_, i) => ({
      positions: make(`guess ${i} positions`, [maxRunning]),
      slots: makeSlots(`guess ${i} slots`, maxRunning),
      tiles: make(`guess ${i} tiles`, [maxRunning, ITEM_WORDS]),
      settings: make(`guess ${i} settings`, [maxRunning, SAMPLING_ROW_WORDS]),
    }));
  }

  /** The draft head's input behind the forward pass of the batch uploaded last, or of a decode plan with `padded` rows. */
  follow(padded?: number): FollowInput {
    return { ...this.#follow, copies: padded ?? this.#copies };
  }

  /** The input of one round of guesses: `batch` with the round's own positions, slots and tiles. */
  draftInput(round: number, batch: ForwardInput): DraftInput {
    const { positions, slots, tiles } = this.#rounds[round]!;
    const split = batch.split && { ...batch.split, positions };
    return { batch: { ...batch, positions, slots, windowSlots: slots, tiles, split }, hidden: round === 0 ? this.#hidden : undefined };
  }

  settings(round: number): Tensor {
    return this.#rounds[round]!.settings;
  }

  /** Reads the batch's guesses, in batch order, out of the contents of Sampler.lastTokens. */
  drafts({ prefills }: Batch, tokens: Uint32Array): Uint32Array {
    const drafting = prefills.filter(({ drafts }) => drafts[0] === FROM_HEAD);
    return Uint32Array.from(
      drafting.flatMap(({ sequence, drafts }) => drafts.map((_, i) => tokens[draftSlot(this.#limits, sequence.row, i)]!)),
    );
  }

  /**
   * Uploads the draft head's input behind a batch's forward pass of `rows` rows, padding included, and notes which hidden states are kept
   * from then on.
   */
  uploadFollow({ decodes, prefills }: Batch, rows: number): void {
    const { maxRunning, headDrafts } = this.#limits;
    const first = firstFinal(keptStates(this.#limits));
    const [previous, positions, slots] = [new Uint32Array(rows), new Uint32Array(rows), new Uint32Array(rows).fill(NO_SLOT)];
    const pairs: number[] = [];
    let row = 0;
    for (const { sequence, start, count, samples } of [...decodes, ...prefills]) {
      for (let position = start; position < start + count; position++, row++) {
        const before = position > start ? first + row - 1 : this.#place(sequence, position - 1);
        // Position 0 has no previous hidden state, and behind a cached prefix it was not kept.
        if (before === undefined) continue;
        [previous[row], positions[row], slots[row]] = [before, position - 1, this.#slot(sequence, position - 1)];
      }
      const kept = Math.max(1, samples);
      for (let i = 0; i < kept; i++) pairs.push(first + row - kept + i, sequence.row * (1 + headDrafts) + i);
      this.#kept.set(sequence.row, { sequence, first: start + count - kept, count: kept });
    }
    // Captured plans copy a row for every padding row too.
    for (; row < rows; row++) pairs.push(first + row, maxRunning * (1 + headDrafts));
    this.#copies = pairs.length / 2;
    this.#device.write(this.#follow.previous, previous);
    this.#device.write(this.#follow.positions, positions);
    this.#device.write(this.#follow.slots, slots);
    this.#device.write(this.#follow.pairs, Uint32Array.from(pairs));
  }

  /**
   * Uploads the rounds of guesses that a batch asks for. Call it before uploadFollow: guesses start from hidden states that earlier steps
   * have kept.
   */
  uploadDrafts({ prefills }: Batch): void {
    const { maxRunning } = this.#limits;
    const items = prefills.filter(({ drafts }) => drafts[0] === FROM_HEAD);
    this.rounds = Math.max(0, ...items.map(({ drafts }) => drafts.length));
    if (this.rounds === 0) return;
    this.rows = this.#buckets.find((size) => size >= items.length)!;
    this.longest = 0;
    const [tokens, hidden] = [new Uint32Array(this.rows), new Uint32Array(this.rows)];
    items.forEach((item, i) => {
      const { sequence, fromDevice } = item;
      const last = lastPosition(item);
      const isNew = fromDevice && last >= sequence.tokens.length;
      tokens[i] = isNew ? FROM_DEVICE + sequence.row : sequence.tokens[last]!;
      const place = this.#place(sequence, last - 1);
      assert(place !== undefined, `sequence ${sequence.id} is guessed from position ${last - 1}, whose hidden state was not kept`);
      hidden[i] = place;
      this.longest = Math.max(this.longest, last + item.drafts.length);
    });
    this.#device.write(this.tokens, tokens);
    this.#device.write(this.#hidden, hidden);
    for (const [index, round] of this.#rounds.slice(0, this.rounds).entries()) {
      const [positions, slots] = [new Uint32Array(this.rows), new Uint32Array(this.rows).fill(NO_SLOT)];
      const [tiles, settings] = [new Uint32Array(this.rows * ITEM_WORDS), new Uint32Array(this.rows * SAMPLING_ROW_WORDS)];
      for (let i = 0; i < this.rows; i++) {
        const item = items[i];
        const takes = item !== undefined && index < item.drafts.length;
        const slot = takes ? draftSlot(this.#limits, item.sequence.row, index) : maxRunning;
        writeSamplingRow(settings, i, { ...GREEDY_SAMPLING, choice: 0, position: 0, slot });
        if (!takes) continue;
        const position = lastPosition(item) - 1 + index;
        [positions[i], slots[i]] = [position, this.#slot(item.sequence, position)];
        tiles.set([i, 1, item.sequence.row, position], i * ITEM_WORDS);
      }
      this.#device.write(round.positions, positions);
      this.#device.write(round.slots, slots);
      this.#device.write(round.tiles, tiles);
      this.#device.write(round.settings, settings);
    }
  }

  /** Index of the kept hidden state of a sequence's position; undefined = it was not kept. */
  #place(sequence: Sequence, position: number): number | undefined {
    const kept = this.#kept.get(sequence.row);
    if (kept?.sequence !== sequence || position < kept.first || position >= kept.first + kept.count) return undefined;
    return sequence.row * (1 + this.#limits.headDrafts) + position - kept.first;
  }

  #slot({ pages }: Sequence, position: number): number {
    return pages[Math.floor(position / this.#pageSize)]! * this.#pageSize + (position % this.#pageSize);
  }
}

/** Position of an item's last token that is no draft. */
function lastPosition({ start, count, drafts }: BatchItem): number {
  return start + count - drafts.length - 1;
}
