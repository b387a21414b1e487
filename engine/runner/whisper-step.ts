/** Steps of Whisper's decoder, and their upload in one piece. */
import { assert } from '../errors.ts';
import type { Device } from '../gpu/device.ts';
import { TOKEN_ROW_WORDS, writeTokenRow } from '../ops/constrained-token.ts';
import type { TokenRow } from '../ops/constrained-token.ts';
import { FROM_DEVICE } from '../ops/sample.ts';
import { StepUpload } from './step-upload.ts';

/** Which tokens a sampled row may take; `languages` allows the language ids only. */
export type MaskName = (typeof MASKS)[number];
/** Masks in the order of their numbers in a step. */
export const MASKS = ['text', 'firstText', 'timestamps', 'firstTimestamps', 'languages'] as const;

/** One row of a step: a token that goes through the decoder. */
export interface StepRow {
  readonly slot: number;
  /** Lane: which of the slot's transcripts; default 0. */
  readonly lane?: number;
  /** Position of the token in its sequence. */
  readonly position: number;
  /** Token id; absent = the token sampled last for this lane, which the host may not know yet. */
  readonly token?: number;
  /** Sample the next token; with a `history`, the best ones. */
  readonly sample?: Omit<TokenRow, 'slot' | 'mask' | 'position'> & { readonly mask: MaskName };
}

/** Copies the key and value of one token from one of a slot's transcripts to another. */
export interface StepCopy {
  readonly slot: number;
  readonly from: number;
  readonly to: number;
  readonly position: number;
}

/** Sizes of a step. */
export interface StepLayout {
  readonly rows: number;
  readonly copies: number;
  /** Rows that are sampled. */
  readonly samples: number;
  /** Whether some of them want more than one token. */
  readonly candidates: boolean;
  /** Tiles of rows of one window, and the rows of the largest tile. */
  readonly crossTiles: { readonly count: number; readonly rows: number };
}

/** Most rows per step: longer prompts take several steps. */
export const MAX_STEP_ROWS = 64;
/** Most copies per step. Hypotheses that diverged long ago differ in many tokens, and feeding one again costs far more than copying it. */
export const MAX_STEP_COPIES = 512;
/** Shapes of a step's arrays, in memory order: few steps copy. */
const ARRAYS = {
  tokens: [MAX_STEP_ROWS],
  positions: [MAX_STEP_ROWS],
  cacheRows: [MAX_STEP_ROWS],
  selfTiles: [MAX_STEP_ROWS, 4],
  crossTiles: [MAX_STEP_ROWS, 4],
  sampledRows: [MAX_STEP_ROWS],
  settings: [MAX_STEP_ROWS, TOKEN_ROW_WORDS],
  copyFrom: [MAX_STEP_COPIES],
  copyTo: [MAX_STEP_COPIES],
} as const;

/** Sizes of the caches and limits of a step. */
export interface StepPlaces {
  readonly slots: number;
  /** Transcripts per slot. */
  readonly lanes: number;
  /** Cache rows of a lane's self-attention, and of a slot's cross-attention. */
  readonly selfRows: number;
  readonly crossRows: number;
  /** Most rows of a window per tile, which share a load of its keys and values. */
  readonly tileRows: number;
  /** Most rows that may be sampled. */
  readonly samples: number;
}

/** The arrays of a step on the device. */
export class WhisperStepUpload {
  readonly tensors: StepUpload<keyof typeof ARRAYS>['tensors'];
  readonly #places: StepPlaces;
  readonly #arrays: StepUpload<keyof typeof ARRAYS>;

  constructor(device: Device, places: StepPlaces) {
    this.#places = places;
    this.#arrays = new StepUpload(device, 'decoder step', ARRAYS);
    this.tensors = this.#arrays.tensors;
  }

  /** Lays a step out and uploads it in one piece. `positions` are the encoder positions of the window in each slot. */
  write(rows: readonly StepRow[], copies: readonly StepCopy[], positions: readonly number[]): StepLayout {
    assert(rows.length > 0 && rows.length <= MAX_STEP_ROWS, `a step of ${rows.length} rows, at most ${MAX_STEP_ROWS}`);
    assert(copies.length <= MAX_STEP_COPIES, `a step with ${copies.length} copies, at most ${MAX_STEP_COPIES}`);
    const { slots, lanes, selfRows, crossRows, tileRows, samples: most } = this.#places;
    const stage = (name: keyof typeof ARRAYS, words = 1): Uint32Array => this.#arrays.stage(name, rows.length * words);
    const [tokens, positionOf, cacheRows, selfTiles] = [stage('tokens'), stage('positions'), stage('cacheRows'), stage('selfTiles', 4)];
    const [tiles, sampledRows, settings] = [stage('crossTiles', 4), stage('sampledRows'), stage('settings', TOKEN_ROW_WORDS)];
    const crossTiles = { count: 0, rows: 0 };
    let samples = 0;
    let candidates = false;
    rows.forEach(({ slot, lane = 0, position, token, sample }, i) => {
      assert(slot < slots && lane < lanes && position < selfRows, `position ${position} of lane ${lane} of slot ${slot}`);
      const place = slot * lanes + lane;
      tokens[i] = token ?? FROM_DEVICE + place;
      positionOf[i] = position;
      cacheRows[i] = place * selfRows + position;
      selfTiles.set([place * selfRows, position + 1, i, 1], 4 * i);
      const last = tiles.subarray(4 * crossTiles.count - 4, 4 * crossTiles.count);
      if (i > 0 && rows[i - 1]!.slot === slot && last[3]! < tileRows) last[3]!++;
      else tiles.set([slot * crossRows, positions[slot]!, i, 1], 4 * crossTiles.count++);
      crossTiles.rows = Math.max(crossTiles.rows, tiles[4 * crossTiles.count - 1]!);
      if (!sample) return;
      assert(samples < most, `more than ${samples} rows of a step are sampled`);
      sampledRows[samples] = i;
      writeTokenRow(settings, samples++, { ...sample, slot: place, position, mask: MASKS.indexOf(sample.mask) });
      candidates ||= sample.history !== undefined;
    });
    this.#stageCopies(copies);
    this.#arrays.upload();
    return { rows: rows.length, copies: copies.length, samples, candidates, crossTiles };
  }

  #stageCopies(copies: readonly StepCopy[]): void {
    if (copies.length === 0) return;
    const { lanes, selfRows } = this.#places;
    const [copyFrom, copyTo] = [this.#arrays.stage('copyFrom', copies.length), this.#arrays.stage('copyTo', copies.length)];
    copies.forEach(({ slot, from, to, position }, i) => {
      copyFrom[i] = (slot * lanes + from) * selfRows + position;
      copyTo[i] = (slot * lanes + to) * selfRows + position;
    });
  }
}
