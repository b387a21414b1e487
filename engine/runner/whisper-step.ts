/** A step of Whisper's decoder: what goes through it, and the one upload that says so. */
import { assert } from '../errors.ts';
import type { Device } from '../gpu/device.ts';
import type { Tensor } from '../gpu/tensor.ts';
import { TOKEN_ROW_WORDS, writeTokenRow } from '../ops/constrained-token.ts';
import type { TokenRow } from '../ops/constrained-token.ts';
import { FROM_DEVICE } from '../ops/sample.ts';

/** Which tokens a sampled row may take; `languages` are the language ids alone. */
export type MaskName = (typeof MASKS)[number];
/** In the order that a step names them by. */
export const MASKS = ['text', 'firstText', 'timestamps', 'firstTimestamps', 'languages'] as const;

/** One token that goes through the decoder. */
export interface StepRow {
  readonly slot: number;
  /** Which of the slot's transcripts; default 0. */
  readonly lane?: number;
  /** Position in its sequence. */
  readonly position: number;
  /** Absent = the token sampled last for this lane, which the host may not have seen yet. */
  readonly token?: number;
  /** Choose a token after this one; with a `history`, the best ones. */
  readonly sample?: Omit<TokenRow, 'slot' | 'mask' | 'position'> & { readonly mask: MaskName };
}

/** The key and value of one token that go from one of a slot's transcripts to another. */
export interface StepCopy {
  readonly slot: number;
  readonly from: number;
  readonly to: number;
  readonly position: number;
}

/** What a step consists of. */
export interface StepLayout {
  readonly rows: number;
  readonly copies: number;
  /** Rows with a choice. */
  readonly samples: number;
  /** Some of them want more than one token. */
  readonly candidates: boolean;
  /** Tiles of rows of one window, and rows in the largest. */
  readonly crossTiles: { readonly count: number; readonly rows: number };
}

/** Rows of one step: prompts longer than this take several. A section of the step's upload is 256 bytes a row of 64 words. */
export const MAX_STEP_ROWS = 64;
/** Copies of one step. Hypotheses that parted long ago differ in many tokens, and feeding one again costs far more than copying it. */
export const MAX_STEP_COPIES = 512;
const SECTION = 64;
const COPY_SECTIONS = MAX_STEP_COPIES / SECTION;
/** First section of each array in the step's upload. */
const AT = {
  tokens: 0, positions: 1, cacheRows: 2, selfTiles: 3, crossTiles: 7, sampledRows: 11, copyFrom: 12,
  copyTo: 12 + COPY_SECTIONS, settings: 12 + 2 * COPY_SECTIONS,
} as const; // prettier-ignore
const SECTIONS = AT.settings + (MAX_STEP_ROWS * TOKEN_ROW_WORDS) / SECTION;

/** Where the rows of a step may lie. */
export interface StepPlaces {
  readonly slots: number;
  /** Transcripts a slot. */
  readonly lanes: number;
  /** Rows of the caches: a lane's own keys and values, and a slot's of its window. */
  readonly selfRows: number;
  readonly crossRows: number;
  /** Rows of a window that its keys and values are loaded for at once. */
  readonly tileRows: number;
  /** Rows that may be sampled. */
  readonly samples: number;
}

/** The device's copy of a step, array by array. */
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

  /** Lays the rows out and uploads them in one piece. `positions` are those of the encoder that the window in each slot has. */
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
