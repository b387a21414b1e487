import type { Device } from '../gpu/device.ts';
import type { Tensor } from '../gpu/tensor.ts';
import type { ForwardInput } from '../models/forward-input.ts';
import { prefillTileRows } from '../models/decoder.ts';
import type { Decoder } from '../models/decoder.ts';
import { NO_SLOT } from '../ops/kv.ts';
import { reserveHalves } from '../ops/linear-matrix.ts';
import { SAMPLING_ROW_WORDS } from '../ops/sampling-row.ts';
import { SPAN_WORDS } from '../ops/states.ts';
import { ATTENTION_SPLIT } from '../ops/paged-attention.ts';
import { ceilDiv, nextPowerOfTwo } from '../util/math.ts';
import { ITEM_WORDS, TABLE_HEAD, decodeBuckets } from './step-input.ts';
import type { StepInput, StepLimits } from './step-input.ts';
import { StepUpload } from './step-upload.ts';

/**
 * With fewer workgroups of decode attention than this, a sequence's positions are split over several (SPEED.md). On a GPU a workgroup has
 * one invocation per position of a part, and each unit of a large card with 132 units has room for two to four such workgroups.
 */
const BUSY_WORKGROUPS = { cpu: 8, generic: 512 } as const;
const MAX_PARTIAL_BYTES = 64 * 2 ** 20;

/** Sizes that a forward pass is recorded for; steps of one shape replay one plan. */
export interface StepShape {
  readonly rows: number;
  /** First prompt row that is multiplied with subgroup matrices; equals `rows` where there is none. */
  readonly promptFrom: number;
  /** Sequences, padding included. */
  readonly spans: number;
  readonly decodeTiles: number;
  readonly prefillTiles: number;
  /** Workgroups that a decode's positions are split over; 1 = not split. */
  readonly parts: number;
  readonly gather: boolean;
  readonly logitRows: number;
  /** Some row may have a LoRA adapter. */
  readonly hasLora: boolean;
}

/**
 * Shapes of the u32 arrays that a step fills, in memory order. An upload ends behind the last array that was filled, so those that only
 * prompts, sliding windows or recurrent states need come last.
 */
function arraysOf(sizes: { readonly rows: number; readonly tiles: number; readonly spans: number; readonly sampled: number }) {
  const { rows, tiles, spans, sampled } = sizes;
  return {
    tokens: [rows],
    positions: [rows],
    slots: [rows],
    tiles: [tiles, 4],
    settings: [sampled, SAMPLING_ROW_WORDS],
    logitIndices: [sampled],
    windowSlots: [rows],
    spans: [spans, SPAN_WORDS],
  };
}

type Arrays = StepUpload<keyof ReturnType<typeof arraysOf>>;

/** The tensors of one device that hold a StepInput. */
export class StepTensors {
  readonly prefillTileRows: number;
  readonly #device: Device;
  readonly #decoder: Pick<Decoder, 'shape'>;
  readonly #limits: StepLimits;
  /** Arrays of decode-only steps: small, so that their upload is. */
  readonly #decodes: Arrays;
  /** Arrays of steps with prompt chunks. */
  readonly #prompts: Arrays;
  /** LoRA adapters of a step's rows, and the scratch of their products; undefined in models without adapters. */
  readonly #loras: { readonly rows: StepUpload<'loras' | 'ofLogits'>; readonly shrunk: Tensor } | undefined;
  readonly #blockTable: Tensor;
  readonly #windowTable: Tensor | undefined;
  readonly #partials: Tensor | undefined;
  readonly #tileWords: Uint32Array;

  constructor(device: Device, decoder: Pick<Decoder, 'shape'>, limits: StepLimits) {
    this.#device = device;
    this.#decoder = decoder;
    this.#limits = limits;
    const { maxRunning, prefillChunk, draftRows, columns, hasWindows } = limits;
    const { heads } = decoder.shape;
    if (limits.promptsApart) reserveHalves(device);
    this.prefillTileRows = prefillTileRows(device.caps, decoder.shape);
    // A sequence's last tile may be partly filled.
    const tiles = 2 * maxRunning + ceilDiv(prefillChunk, this.prefillTileRows);
    this.#tileWords = new Uint32Array(tiles * 4);
    const arrays = (label: string, rows: number, sizes: Omit<Parameters<typeof arraysOf>[0], 'rows'>): Arrays => {
      const made = new StepUpload(device, label, arraysOf({ rows, ...sizes }));
      for (const name of ['slots', 'windowSlots'] as const) made.put(name, new Uint32Array(rows).fill(NO_SLOT));
      made.upload();
      return made;
    };
    this.#decodes = arrays('decodes', maxRunning, { tiles: maxRunning, spans: maxRunning, sampled: maxRunning });
    this.#prompts = arrays('prompts', maxRunning + prefillChunk, { tiles, spans: 2 * maxRunning, sampled: maxRunning + draftRows });
    this.#loras = lorasOf(device, limits);
    this.#blockTable = device.tensor('block table', 'u32', [maxRunning, columns]);
    this.#windowTable = hasWindows ? device.tensor('block table of windows', 'u32', [maxRunning, columns]) : undefined;
    const partialRows = decodeBuckets(maxRunning).map((bucket) => (this.maxParts(bucket) > 1 ? bucket * this.maxParts(bucket) : 0));
    const largest = Math.max(...partialRows);
    this.#partials = largest > 0 ? device.tensor('attention partials', 'f32', [largest * heads, this.#partialColumns]) : undefined;
  }

  /**
   * Uploads a step's rows, tiles and sampling settings in one write, and the changes of the block table, which few steps have; returns the
   * step's shape.
   */
  upload(input: StepInput): StepShape {
    this.#uploadTable(input);
    const [rows, logitRows, gather] = [input.get('rows'), input.get('logitRows'), input.get('gather') !== 0];
    const arrays = this.#arrays(gather);
    arrays.put('tokens', input.tokens.subarray(0, rows));
    arrays.put('positions', input.positions.subarray(0, rows));
    arrays.put('slots', input.slots.subarray(0, rows));
    if (this.#windowTable) arrays.put('windowSlots', input.windowSlots.subarray(0, rows));
    if (gather) arrays.put('logitIndices', input.logitIndices.subarray(0, logitRows));
    arrays.put('settings', input.sampling.subarray(0, logitRows * SAMPLING_ROW_WORDS));
    const spans = input.get('items');
    if (this.#decoder.shape.state) arrays.put('spans', input.spans.subarray(0, spans * SPAN_WORDS));
    const decodeTiles = input.get('decodes');
    const prefillTiles = this.#cutTiles(input) - decodeTiles;
    arrays.put('tiles', this.#tileWords.subarray(0, (decodeTiles + prefillTiles) * 4));
    arrays.upload();
    const hasLora = input.get('hasLora') !== 0;
    if (hasLora) this.#uploadLoras(input, rows, logitRows, gather);
    const parts = gather ? 1 : this.partsOf(rows, input.get('longest'));
    return { rows, promptFrom: input.get('promptFrom'), spans, decodeTiles, prefillTiles, parts, gather, logitRows, hasLora };
  }

  /** Uploads the sampling settings of `maxRunning` rows, for warming up. */
  uploadSettings(input: StepInput): void {
    for (const arrays of [this.#decodes, this.#prompts]) {
      arrays.put('settings', input.sampling.subarray(0, this.#limits.maxRunning * SAMPLING_ROW_WORDS));
      arrays.upload();
    }
  }

  /** [T] u32: token ids of a step, FROM_DEVICE entries not yet resolved. */
  tokens({ gather }: Pick<StepShape, 'gather'>): Tensor {
    return this.#arrays(gather).tensors.tokens;
  }

  /** [B, SAMPLING_ROW_WORDS] u32: sampling settings by logit row. */
  settings({ gather }: Pick<StepShape, 'gather'>): Tensor {
    return this.#arrays(gather).tensors.settings;
  }

  #arrays(gather: boolean): Arrays {
    return gather ? this.#prompts : this.#decodes;
  }

  /** The shape of a decode-only batch of `bucket` rows. */
  decodeShape(bucket: number, parts: number, hasLora = false): StepShape {
    return {
      rows: bucket,
      promptFrom: bucket,
      spans: bucket,
      decodeTiles: bucket,
      prefillTiles: 0,
      parts,
      gather: false,
      logitRows: bucket,
      hasLora,
    };
  }

  /**
   * The shape of a prompt chunk of `wanted` rows, or as many as a step may have; with `promptsApart` its first `answers` rows count as
   * generated tokens.
   */
  prefillShape(wanted: number, logitRows: number, answers: number, hasLora = false): StepShape {
    const { maxRunning, prefillChunk, promptsApart } = this.#limits;
    const rows = Math.min(maxRunning + prefillChunk, wanted);
    const promptFrom = promptsApart ? Math.min(answers, rows) : rows;
    const prefillTiles = ceilDiv(rows, this.prefillTileRows);
    return {
      rows,
      promptFrom,
      spans: 1,
      decodeTiles: 0,
      prefillTiles,
      parts: 1,
      gather: true,
      logitRows: Math.min(rows, logitRows),
      hasLora,
    };
  }

  /** The input of a forward pass of this shape; `tokens` [T] u32 must be resolved token ids. */
  forwardInput(shape: StepShape, tokens: Tensor): ForwardInput {
    const { rows, promptFrom, spans, decodeTiles, prefillTiles, parts, gather, logitRows, hasLora } = shape;
    const { positions, slots, windowSlots, tiles, spans: words, logitIndices } = this.#arrays(gather).tensors;
    return {
      rows,
      promptFrom,
      tokens,
      positions,
      slots,
      blockTable: this.#blockTable,
      windowSlots: this.#windowTable ? windowSlots : slots,
      windowTable: this.#windowTable ?? this.#blockTable,
      tiles,
      decodeTiles,
      prefillTiles,
      prefillTileRows: this.prefillTileRows,
      spans: { words, count: spans },
      split: parts === 1 ? undefined : { partials: this.#partials!, positions, parts, rows },
      logitIndices: gather ? logitIndices : undefined,
      logitRows,
      ...(hasLora && this.#loras && { lora: { ...this.#loras.rows.tensors, shrunk: this.#loras.shrunk } }),
    };
  }

  /** Parts that decode attention splits positions into, for a bucket whose longest sequence has `longest` positions. */
  partsOf(bucket: number, longest: number): number {
    return Math.min(this.maxParts(bucket), nextPowerOfTwo(ceilDiv(longest, ATTENTION_SPLIT)));
  }

  /** Most parts that decode attention of a bucket splits positions into: 1 where its rows keep the device busy by themselves. */
  maxParts(bucket: number): number {
    const { heads, pages } = this.#decoder.shape;
    const { caps } = this.#device;
    const parts = nextPowerOfTwo(ceilDiv(this.#limits.context, ATTENTION_SPLIT));
    const bytes = bucket * heads * parts * this.#partialColumns * 4;
    const busy = bucket * Math.min(...pages.map(({ kvHeads }) => kvHeads)) >= BUSY_WORKGROUPS[caps.family];
    return busy || bytes > Math.min(MAX_PARTIAL_BYTES, caps.maxBindingBytes) ? 1 : parts;
  }

  /** Columns of a partial result of the widest head: its channels, and what the parts are weighed with. */
  get #partialColumns(): number {
    return Math.max(...this.#decoder.shape.pages.map(({ headDim }) => headDim)) + 4;
  }

  #uploadLoras({ loras, logitIndices }: StepInput, rows: number, logitRows: number, gather: boolean): void {
    const { rows: arrays } = this.#loras!;
    arrays.put('loras', loras.subarray(0, rows));
    if (gather) arrays.put('ofLogits', logitIndices.subarray(0, logitRows).map((row) => loras[row]!)); // prettier-ignore
    arrays.upload();
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

  /** Fills `#tileWords` with one tile per decode, then tiles of up to `prefillTileRows` prompt rows; returns their number. */
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

function lorasOf(device: Device, { maxRunning, prefillChunk, draftRows, loraColumns = 0 }: StepLimits) {
  if (loraColumns === 0) return undefined;
  const rows = maxRunning + prefillChunk;
  return {
    rows: new StepUpload(device, 'loras', { loras: [rows], ofLogits: [maxRunning + draftRows] }),
    shrunk: device.tensor('shrunk rows', 'f32', [rows, loraColumns]),
  };
}
