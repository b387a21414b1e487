import type { Device } from '../gpu/device.ts';
import type { Tensor } from '../gpu/tensor.ts';
import type { ForwardInput } from '../models/forward-input.ts';
import { prefillTileRows } from '../models/decoder.ts';
import type { Decoder } from '../models/decoder.ts';
import { NO_SLOT } from '../ops/kv.ts';
import { SPAN_WORDS } from '../ops/states.ts';
import { ATTENTION_SPLIT } from '../ops/paged-attention.ts';
import { ceilDiv, nextPowerOfTwo } from '../util/math.ts';
import { ITEM_WORDS, TABLE_HEAD, decodeBuckets } from './step-input.ts';
import type { StepInput, StepLimits } from './step-input.ts';

/** Workgroups of decode attention below which a sequence's positions are spread over several (SPEED.md). */
const BUSY_WORKGROUPS = { cpu: 8, generic: 256 } as const;
const MAX_PARTIAL_BYTES = 64 * 2 ** 20;

/** What a forward pass is recorded for; steps of one shape replay one plan. */
export interface StepShape {
  readonly rows: number;
  /** Sequences, padding included. */
  readonly spans: number;
  readonly decodeTiles: number;
  readonly prefillTiles: number;
  /** Workgroups a decode's positions are spread over; 1 = not spread. */
  readonly parts: number;
  readonly gather: boolean;
  readonly logitRows: number;
}

/** The tensors of one device that StepInputs are uploaded to. */
export class StepTensors {
  /** [T] u32: the tokens as they are in the input, where some stand for those of the step before. */
  readonly tokens: Tensor;
  readonly prefillTileRows: number;
  readonly #device: Device;
  readonly #decoder: Pick<Decoder, 'shape'>;
  readonly #limits: StepLimits;
  readonly #positions: Tensor;
  readonly #slots: Tensor;
  readonly #windowSlots: Tensor | undefined;
  readonly #tiles: Tensor;
  readonly #spans: Tensor;
  readonly #logitIndices: Tensor;
  readonly #blockTable: Tensor;
  readonly #windowTable: Tensor | undefined;
  readonly #partials: Tensor | undefined;
  readonly #tileWords: Uint32Array;

  constructor(device: Device, decoder: Pick<Decoder, 'shape'>, limits: StepLimits) {
    this.#device = device;
    this.#decoder = decoder;
    this.#limits = limits;
    const { maxRunning, prefillChunk, draftRows, columns, hasWindows } = limits;
    const rows = maxRunning + prefillChunk;
    const { heads } = decoder.shape;
    this.prefillTileRows = prefillTileRows(device.caps, decoder.shape);
    // Every sequence may end with a tile that is not full.
    const tiles = 2 * maxRunning + ceilDiv(prefillChunk, this.prefillTileRows);
    const make = (name: string, shape: readonly number[]): Tensor => device.tensor(name, 'u32', shape);
    this.tokens = make('tokens', [rows]);
    this.#positions = make('positions', [rows]);
    const makeSlots = (name: string): Tensor => device.upload(name, 'u32', [rows], new Uint32Array(rows).fill(NO_SLOT));
    this.#slots = makeSlots('slots');
    this.#windowSlots = hasWindows ? makeSlots('slots of windows') : undefined;
    this.#tiles = make('tiles', [tiles, 4]);
    this.#spans = make('spans', [2 * maxRunning, SPAN_WORDS]);
    this.#tileWords = new Uint32Array(tiles * 4);
    this.#logitIndices = make('logit rows', [maxRunning + draftRows]);
    this.#blockTable = make('block table', [maxRunning, columns]);
    this.#windowTable = hasWindows ? make('block table of windows', [maxRunning, columns]) : undefined;
    const partialRows = decodeBuckets(maxRunning).map((bucket) => (this.maxParts(bucket) > 1 ? bucket * this.maxParts(bucket) : 0));
    const largest = Math.max(...partialRows);
    this.#partials = largest > 0 ? device.tensor('attention partials', 'f32', [largest * heads, this.#partialColumns]) : undefined;
  }

  /** Writes a step's rows, tiles and changes of the block table; returns its shape. */
  upload(input: StepInput): StepShape {
    const device = this.#device;
    this.#uploadTable(input);
    const [rows, logitRows, gather] = [input.get('rows'), input.get('logitRows'), input.get('gather') !== 0];
    device.write(this.tokens, input.tokens.subarray(0, rows));
    device.write(this.#positions, input.positions.subarray(0, rows));
    device.write(this.#slots, input.slots.subarray(0, rows));
    if (this.#windowSlots) device.write(this.#windowSlots, input.windowSlots.subarray(0, rows));
    if (gather && logitRows > 0) device.write(this.#logitIndices, input.logitIndices.subarray(0, logitRows));
    const spans = input.get('items');
    if (this.#decoder.shape.state) device.write(this.#spans, input.spans.subarray(0, spans * SPAN_WORDS));
    const decodeTiles = input.get('decodes');
    const prefillTiles = this.#cutTiles(input) - decodeTiles;
    device.write(this.#tiles, this.#tileWords.subarray(0, (decodeTiles + prefillTiles) * 4));
    const needed = nextPowerOfTwo(ceilDiv(input.get('longest'), ATTENTION_SPLIT));
    const parts = gather ? 1 : Math.min(this.maxParts(rows), needed);
    return { rows, spans, decodeTiles, prefillTiles, parts, gather, logitRows };
  }

  /** The shape of a decode batch of one bucket. */
  decodeShape(bucket: number, parts: number): StepShape {
    return { rows: bucket, spans: bucket, decodeTiles: bucket, prefillTiles: 0, parts, gather: false, logitRows: bucket };
  }

  /** What a forward pass of a shape reads. `tokens` [T] u32 are ids of the vocabulary. */
  forwardInput({ rows, spans, decodeTiles, prefillTiles, parts, gather, logitRows }: StepShape, tokens: Tensor): ForwardInput {
    const positions = this.#positions;
    return {
      rows,
      tokens,
      positions,
      slots: this.#slots,
      blockTable: this.#blockTable,
      windowSlots: this.#windowSlots ?? this.#slots,
      windowTable: this.#windowTable ?? this.#blockTable,
      tiles: this.#tiles,
      decodeTiles,
      prefillTiles,
      prefillTileRows: this.prefillTileRows,
      spans: { words: this.#spans, count: spans },
      split: parts === 1 ? undefined : { partials: this.#partials!, positions, parts, rows },
      logitIndices: gather ? this.#logitIndices : undefined,
      logitRows,
    };
  }

  /** Parts that decode attention of a bucket may use: 1 when its rows keep the device busy by themselves. */
  maxParts(bucket: number): number {
    const { heads, pages } = this.#decoder.shape;
    const { caps } = this.#device;
    const parts = nextPowerOfTwo(ceilDiv(this.#limits.context, ATTENTION_SPLIT));
    const bytes = bucket * heads * parts * this.#partialColumns * 4;
    const busy = bucket * Math.min(...pages.map(({ kvHeads }) => kvHeads)) >= BUSY_WORKGROUPS[caps.family];
    return busy || bytes > Math.min(MAX_PARTIAL_BYTES, caps.maxBindingBytes) ? 1 : parts;
  }

  /** Of the widest head: its channels, and what the parts are weighed with. */
  get #partialColumns(): number {
    return Math.max(...this.#decoder.shape.pages.map(({ headDim }) => headDim)) + 4;
  }

  #uploadTable(input: StepInput): void {
    const { table } = input;
    const { columns, maxRunning } = this.#limits;
    for (let at = 0, end = input.get('tableWords'); at < end;) {
      const [row = 0, column = 0, count = 0] = table.subarray(at, at + TABLE_HEAD);
      at += TABLE_HEAD;
      const to = row < maxRunning ? this.#blockTable : this.#windowTable!;
      this.#device.write(to, table.subarray(at, at + count), (row % maxRunning) * columns + column);
      at += count;
    }
  }

  /** One tile a decode, then the prompts in tiles of as many rows as this device takes; returns their number. */
  #cutTiles(input: StepInput): number {
    const tiles = this.#tileWords;
    const decodes = input.get('decodes');
    tiles.set(input.items.subarray(0, decodes * ITEM_WORDS));
    let tile = decodes;
    for (let item = decodes; item < input.get('items'); item++) {
      const [row = 0, count = 0, sequence = 0, start = 0] = input.items.subarray(item * ITEM_WORDS, (item + 1) * ITEM_WORDS);
      for (let i = 0; i < count; i += this.prefillTileRows) {
        tiles.set([row + i, Math.min(this.prefillTileRows, count - i), sequence, start + i], tile++ * 4);
      }
    }
    return tile;
  }
}
