/** Runs a decoder without scheduler and sampler: rows in, logits out, stages traced. */
import { floatStorage } from '../../engine/config.ts';
import type { WeightStorage } from '../../engine/config.ts';
import type { Device } from '../../engine/gpu/device.ts';
import type { Tensor } from '../../engine/gpu/tensor.ts';
import { decoderFor } from '../../engine/models/registry.ts';
import { createDecoderKV, prefillTileRows } from '../../engine/models/decoder.ts';
import type { Decoder, DecoderWorkspace } from '../../engine/models/decoder.ts';
import { LoraSet } from '../../engine/models/lora-set.ts';
import { WeightLoader } from '../../engine/models/weight-loader.ts';
import type { KVCache, KVType } from '../../engine/ops/kv.ts';
import { SPAN_WORDS, writeSpan } from '../../engine/ops/states.ts';
import { createNodePlatform } from '../../engine/platform/node.ts';
import { ceilDiv } from '../../engine/util/math.ts';
import type { Checkpoint } from '../../engine/weights/checkpoint.ts';
import { withWeights } from '../../engine/weights/model-folder.ts';
import type { LoraSource } from '../../engine/weights/lora/lora-adapter.ts';
import { openModelFolder } from '../../engine/weights/open-model-folder.ts';

const PAGE = 16;
/** Rows of a step, each with logits, unless a test says otherwise. */
const ROWS = 600;

/** Tokens of one sequence at consecutive positions. */
export interface Chunk {
  readonly sequence: number;
  readonly start: number;
  readonly tokens: readonly number[];
  /** 1 + the index of the LoRA adapter; default 0, none. */
  readonly lora?: number;
}

interface Pages {
  readonly kvType: KVType;
  readonly sequences: number;
  readonly context: number;
}

function createPages(device: Device, decoder: Decoder, { kvType, sequences, context }: Pages): Promise<KVCache> {
  const shape = { layers: decoder.shape.pages, pageSize: PAGE, dtype: kvType };
  return createDecoderKV(device, decoder, shape, { limit: sequences * ceilDiv(context, PAGE) }, { limit: sequences });
}

export class DecoderHarness {
  readonly device: Device;
  readonly decoder: Decoder;
  /** On the device. */
  readonly weightBytes: number;
  readonly #kv: KVCache;
  readonly #workspace: DecoderWorkspace;
  readonly #context: number;
  /** Scratch of products by LoRA adapters; undefined without any. */
  readonly #shrunk: Tensor | undefined;

  private constructor(
    device: Device,
    decoder: Decoder,
    weightBytes: number,
    kv: KVCache,
    context: number,
    workspace: DecoderWorkspace,
    shrunk: Tensor | undefined,
  ) {
    this.device = device;
    this.decoder = decoder;
    this.weightBytes = weightBytes;
    this.#kv = kv;
    this.#workspace = workspace;
    this.#context = context;
    this.#shrunk = shrunk;
  }

  static async load(
    device: Device,
    folder: string,
    {
      dtype = 'f32',
      storage = floatStorage(dtype),
      kvType = dtype,
      sequences = 4,
      context = 512,
      rows = ROWS,
      loras = [],
    }: {
      dtype?: 'f32' | 'f16';
      storage?: WeightStorage;
      kvType?: KVType;
      sequences?: number;
      context?: number;
      rows?: number;
      loras?: readonly LoraSource[];
    } = {},
  ): Promise<DecoderHarness> {
    const model = await openModelFolder(createNodePlatform(), folder);
    const json = await model.json('config.json');
    const before = device.stats.bufferBytes;
    const { decoder, columns } = await LoraSet.with(createNodePlatform(), loras, json, async (set) => {
      const load = (checkpoint: Checkpoint): Promise<Decoder> =>
        decoderFor(json).load(new WeightLoader(device, checkpoint, storage, { loras: set }), json, context);
      const loaded = await withWeights(model, load);
      set.expectTaken(String(json['model_type']));
      return { decoder: loaded, columns: set.columns };
    });
    const weightBytes = device.stats.bufferBytes - before;
    const kv = await createPages(device, decoder, { kvType, sequences, context });
    const shrunk = columns > 0 ? device.tensor('shrunk', 'f32', [rows, columns]) : undefined;
    return new DecoderHarness(device, decoder, weightBytes, kv, context, decoder.createWorkspace(device, rows, rows), shrunk);
  }

  /** The same weights over empty pages of another type; steps of the two may not overlap. */
  async over(kvType: KVType, sequences = 4): Promise<DecoderHarness> {
    const { device, decoder, weightBytes } = this;
    const kv = await createPages(device, decoder, { kvType, sequences, context: this.#context });
    return new DecoderHarness(device, decoder, weightBytes, kv, this.#context, this.#workspace, this.#shrunk);
  }

  /**
   * One step over chunks; decodes (chunks of one token) come first. Returns logits by row: [T][V]. `trace` gets every stage's values
   * of all rows; rows from `promptFrom` on are of prompts that take matrices.
   */
  async step(
    chunks: readonly Chunk[],
    trace?: (stage: string, values: Float32Array) => void,
    promptFrom?: number,
  ): Promise<Float32Array[]> {
    const { device } = this;
    const perSequence = ceilDiv(this.#context, PAGE);
    // Sequences take interleaved pages, so that neighbours in a sequence are not neighbours in memory.
    const page = (sequence: number, index: number): number => index * (this.#kv.pages / perSequence) + sequence;
    const decodes = chunks.filter(({ tokens }) => tokens.length === 1);
    const prefills = chunks.filter(({ tokens }) => tokens.length > 1);
    if ([...decodes, ...prefills].some((chunk, i) => chunk !== chunks[i])) throw new Error('chunks of one token come first');
    const { vocabulary } = this.decoder.shape;
    const tileRows = prefillTileRows(device.caps, this.decoder.shape);
    const [ids, positions, slots, tiles]: number[][] = [[], [], [], []];
    const spanWords = new Uint32Array(chunks.length * SPAN_WORDS);
    // A sequence's slot has its number.
    chunks.forEach(({ sequence, start, tokens }, i) => {
      const first = chunks.slice(0, i).reduce((sum, chunk) => sum + chunk.tokens.length, 0);
      writeSpan(spanWords, i, { first, rows: tokens.length, read: start === 0 ? undefined : sequence, write: sequence });
    });
    for (const { sequence, start, tokens } of chunks) {
      const step = tokens.length === 1 ? 1 : tileRows;
      for (let i = 0; i < tokens.length; i += step) tiles!.push(ids!.length + i, Math.min(step, tokens.length - i), sequence, start + i);
      tokens.forEach((token, i) => {
        ids!.push(token);
        positions!.push(start + i);
        slots!.push(page(sequence, Math.floor((start + i) / PAGE)) * PAGE + ((start + i) % PAGE));
      });
    }
    const upload = (name: string, values: readonly number[], shape: readonly number[]) => device.upload(name, 'u32', shape, Uint32Array.from(values)); // prettier-ignore
    const rows = ids!.length;
    const ofRows = chunks.flatMap(({ tokens, lora = 0 }) => tokens.map(() => lora));
    const loras = ofRows.some((lora) => lora > 0) ? upload('loras', ofRows, [rows]) : undefined;
    const sequences = this.#kv.pages / perSequence;
    const table = Array.from({ length: sequences * perSequence }, (_, i) => page(Math.floor(i / perSequence), i % perSequence));
    const blockTable = upload('table', table, [sequences, perSequence]);
    const places = upload('slots', slots!, [rows]);
    const stages: { stage: string; values: ReturnType<Device['tensor']> }[] = [];
    const rec = device.record('harness');
    const logits = this.#workspace.forward(
      rec,
      {
        rows,
        tokens: upload('ids', ids!, [rows]),
        positions: upload('positions', positions!, [rows]),
        slots: places,
        windowSlots: places,
        blockTable,
        windowTable: blockTable,
        tiles: upload('tiles', tiles!, [tiles!.length / 4, 4]),
        decodeTiles: decodes.length,
        prefillTiles: tiles!.length / 4 - decodes.length,
        prefillTileRows: tileRows,
        spans: { words: upload('spans', [...spanWords], [chunks.length, SPAN_WORDS]), count: chunks.length },
        split: undefined,
        logitIndices: undefined,
        logitRows: rows,
        ...(promptFrom !== undefined && { promptFrom }),
        ...(loras && { lora: { loras, ofLogits: loras, shrunk: this.#shrunk! } }),
        ...(trace && {
          trace: (stage, value) => {
            const copy = device.tensor(stage, 'f32', [rows, value.shape[1]!]);
            rec.copy(value, copy, copy.byteLength);
            stages.push({ stage, values: copy });
          },
        }),
      },
      this.#kv,
    );
    rec.submit();
    for (const { stage, values } of stages) trace!(stage, (await device.read(values)) as Float32Array);
    const all = (await device.read(logits)) as Float32Array;
    return Array.from({ length: rows }, (_, row) => all.slice(row * vocabulary, (row + 1) * vocabulary));
  }
}

/** Index of the largest value. */
export function argmax(values: ArrayLike<number>): number {
  let best = 0;
  for (let i = 1; i < values.length; i++) if (values[i]! > values[best]!) best = i;
  return best;
}
