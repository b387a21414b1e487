/** Steps of Whisper's decoder, and their upload in one piece. */
import { assert } from '../errors.ts';
import type { Device } from '../gpu/device.ts';
import type { Tensor } from '../gpu/tensor.ts';
import { TOKEN_ROW_WORDS, writeTokenRow } from '../ops/constrained-token.ts';
import type { TokenRow } from '../ops/constrained-token.ts';
import { FROM_DEVICE } from '../ops/sample.ts';

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

/** Most rows per step: longer prompts take several steps. A section of the upload has 256 bytes per row of 64 words. */
export const MAX_STEP_ROWS = 64;
/** Most copies per step. Hypotheses that diverged long ago differ in many tokens, and feeding one again costs far more than copying it. */
export const MAX_STEP_COPIES = 512;
const SECTION = 64;
const COPY_SECTIONS = MAX_STEP_COPIES / SECTION;
/** First section of each array in a step's upload. */
const AT = {
  tokens: 0, positions: 1, cacheRows: 2, selfTiles: 3, crossTiles: 7, sampledRows: 11, copyFrom: 12,
  copyTo: 12 + COPY_SECTIONS, settings: 12 + 2 * COPY_SECTIONS,
} as const; // prettier-ignore
const SECTIONS = AT.settings + (MAX_STEP_ROWS * TOKEN_ROW_WORDS) / SECTION;

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
  readonly sections: Readonly<Record<keyof typeof AT, Tensor>>;
  readonly #device: Device;
  readonly #places: StepPlaces;
  readonly #tensor: Tensor;
  readonly #words = new Uint32Array(SECTIONS * SECTION);

  constructor(device: Device, places: StepPlaces) {
    this.#device = device;
    this.#places = places;
    this.#tensor = device.tensor('decoder step', 'u32', [SECTIONS, SECTION]);
    const section = (first: number, shape: readonly number[]): Tensor => {
      const size = shape.reduce((a, b) => a * b, 1);
      return this.#tensor.rows(first, first + Math.ceil(size / SECTION)).reshape(shape);
    };
    this.sections = {
      tokens: section(AT.tokens, [MAX_STEP_ROWS]),
      positions: section(AT.positions, [MAX_STEP_ROWS]),
      cacheRows: section(AT.cacheRows, [MAX_STEP_ROWS]),
      selfTiles: section(AT.selfTiles, [MAX_STEP_ROWS, 4]),
      crossTiles: section(AT.crossTiles, [MAX_STEP_ROWS, 4]),
      sampledRows: section(AT.sampledRows, [MAX_STEP_ROWS]),
      copyFrom: section(AT.copyFrom, [MAX_STEP_COPIES]),
      copyTo: section(AT.copyTo, [MAX_STEP_COPIES]),
      settings: section(AT.settings, [MAX_STEP_ROWS, TOKEN_ROW_WORDS]),
    };
  }

  /** Lays a step out and uploads it in one piece. `positions` are the encoder positions of the window in each slot. */
  write(rows: readonly StepRow[], copies: readonly StepCopy[], positions: readonly number[]): StepLayout {
    assert(rows.length > 0 && rows.length <= MAX_STEP_ROWS, `a step of ${rows.length} rows, at most ${MAX_STEP_ROWS}`);
    assert(copies.length <= MAX_STEP_COPIES, `a step with ${copies.length} copies, at most ${MAX_STEP_COPIES}`);
    const { slots, lanes, selfRows, crossRows, tileRows, samples: most } = this.#places;
    const words = this.#words;
    const settings = words.subarray(AT.settings * SECTION);
    const tiles = words.subarray(AT.crossTiles * SECTION);
    const crossTiles = { count: 0, rows: 0 };
    let samples = 0;
    let candidates = false;
    rows.forEach(({ slot, lane = 0, position, token, sample }, i) => {
      assert(slot < slots && lane < lanes && position < selfRows, `position ${position} of lane ${lane} of slot ${slot}`);
      const place = slot * lanes + lane;
      words[AT.tokens * SECTION + i] = token ?? FROM_DEVICE + place;
      words[AT.positions * SECTION + i] = position;
      words[AT.cacheRows * SECTION + i] = place * selfRows + position;
      words.set([place * selfRows, position + 1, i, 1], AT.selfTiles * SECTION + 4 * i);
      const last = tiles.subarray(4 * crossTiles.count - 4, 4 * crossTiles.count);
      if (i > 0 && rows[i - 1]!.slot === slot && last[3]! < tileRows) last[3]!++;
      else tiles.set([slot * crossRows, positions[slot]!, i, 1], 4 * crossTiles.count++);
      crossTiles.rows = Math.max(crossTiles.rows, tiles[4 * crossTiles.count - 1]!);
      if (!sample) return;
      assert(samples < most, `more than ${samples} rows of a step are sampled`);
      words[AT.sampledRows * SECTION + samples] = i;
      writeTokenRow(settings, samples++, { ...sample, slot: place, position, mask: MASKS.indexOf(sample.mask) });
      candidates ||= sample.history !== undefined;
    });
    copies.forEach(({ slot, from, to, position }, i) => {
      words[AT.copyFrom * SECTION + i] = (slot * lanes + from) * selfRows + position;
      words[AT.copyTo * SECTION + i] = (slot * lanes + to) * selfRows + position;
    });
    this.#device.write(this.#tensor, words);
    return { rows: rows.length, copies: copies.length, samples, candidates, crossTiles };
  }
}
