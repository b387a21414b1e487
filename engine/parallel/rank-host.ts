/** Builds one rank in steps that all ranks take together: device, weights, activations, pages. */
import type { AdapterInfo, MemoryUse } from '../api.ts';
import { Device } from '../gpu/device.ts';
import type { DeviceStats } from '../gpu/device.ts';
import { deviceMemory } from '../gpu/memory.ts';
import type { Decoder, DecoderWorkspace } from '../models/registry.ts';
import { definitionFor } from '../models/remote.ts';
import type { Shard } from '../models/shard.ts';
import { createKVCache } from '../ops/kv.ts';
import type { KVType } from '../ops/kv.ts';
import type { Platform } from '../platform/platform.ts';
import { planMemory } from '../runner/kv-budget.ts';
import type { StepLimits } from '../runner/step-input.ts';
import { sizeOf } from '../util/math.ts';
import { Checkpoint } from '../weights/safetensors.ts';
import { WeightLoader } from '../weights/weight-loader.ts';
import { GroupMemory } from './group-memory.ts';
import type { GroupSizes } from './group-memory.ts';
import { Link } from './link.ts';
import type { RankPlace } from './link.ts';
import { measureSpeed } from './measure.ts';
import { Rank } from './rank.ts';
import { SharedSignals } from './signals.ts';
import type { Signals } from './signals.ts';

/** The model and how it is stored; plain data, the same for all ranks. */
export interface SplitModel {
  readonly id: string;
  readonly folder: string;
  readonly config: Readonly<Record<string, unknown>>;
  readonly dtype: 'f32' | 'f16';
  readonly kvType: KVType;
  readonly pageSize: number;
  /** Longest sequence asked for, in tokens. */
  readonly context: number;
  readonly memFractionStatic: number;
  readonly deviceMemory?: number | undefined;
  /** Bytes that other models take of the adapter's memory. */
  readonly otherBytes: number;
  readonly trustRemoteCode: boolean;
}

export interface OpenedRank {
  readonly adapter: AdapterInfo;
  readonly maxBindingBytes: number;
}

export interface LoadedRank {
  readonly parameters: number;
  readonly weightBytes: number;
  /** Columns of the widest activation, and tokens whose logits this rank has. */
  readonly widestRow: number;
  readonly tokens: number;
}

export class RankHost {
  readonly #platform: Platform;
  #device!: Device;
  #model!: SplitModel;
  #place!: RankPlace;
  #decoder!: Decoder;
  #workspace!: DecoderWorkspace;
  #bytes = { others: 0, weights: 0 };
  #memory!: GroupMemory;
  #rank!: Rank;

  constructor(platform: Platform) {
    this.#platform = platform;
  }

  /** Resolves with the reason when the device is gone; only after open(). */
  get lost(): Promise<string> {
    return this.#device.lost;
  }

  /** Counters of the device. */
  get stats(): DeviceStats {
    return this.#device.stats;
  }

  /** Takes the adapter with this name, or the platform's best. */
  async open(adapter: string | undefined): Promise<OpenedRank> {
    this.#device = await Device.create(this.#platform, adapter === undefined ? {} : { name: adapter });
    return { adapter: this.#device.info, maxBindingBytes: this.#device.caps.maxBindingBytes };
  }

  /** What bounds a token: GB of weights a second. */
  async measure(): Promise<number> {
    return (await measureSpeed(this.#device)).gigabytesPerSecond;
  }

  /** Reads this rank's shard of the weights. */
  async load(model: SplitModel, place: RankPlace, shard: Shard): Promise<LoadedRank> {
    this.#model = model;
    this.#place = place;
    const device = this.#device;
    const others = device.stats.bufferBytes;
    const checkpoint = await Checkpoint.open(this.#platform, model.folder);
    const loader = new WeightLoader(device, checkpoint, model.dtype);
    const definition = await definitionFor(this.#platform, model.folder, model.config, model.trustRemoteCode);
    this.#decoder = await definition.load(loader, model.config, model.context, shard);
    await checkpoint.close();
    const weights = device.stats.bufferBytes - others;
    this.#bytes = { others: others + model.otherBytes, weights };
    const { parameters, shape, tokens } = this.#decoder;
    return { parameters, weightBytes: weights, widestRow: shape.widestRow, tokens: sizeOf(tokens) };
  }

  /** Makes the activations; returns how the memory divides and how many pages it leaves. Throws EngineError('out_of_memory'). */
  async reserve(limits: Pick<StepLimits, 'maxRunning' | 'prefillChunk' | 'draftRows'>): Promise<MemoryUse> {
    const { maxRunning, prefillChunk, draftRows } = limits;
    const device = this.#device;
    const { id, context, memFractionStatic: fraction, deviceMemory: given } = this.#model;
    this.#workspace = this.#decoder.createWorkspace(device, maxRunning + prefillChunk, maxRunning + draftRows);
    const { others, weights } = this.#bytes;
    const { bufferBytes } = device.stats;
    return planMemory({
      model: id,
      memory: await deviceMemory(device, given),
      fraction,
      others,
      weights,
      activations: bufferBytes + this.#model.otherBytes - others - weights,
      kv: this.#kvShape(),
      maxRunning,
      context,
      maxBindingBytes: device.caps.maxBindingBytes,
    });
  }

  /** Makes the pages, joins the group and warms up. `signals` are given where all ranks share a thread. */
  async start(pages: number, sizes: GroupSizes, buffer: ArrayBufferLike, signals?: Signals): Promise<void> {
    const device = this.#device;
    const kv = createKVCache(device, this.#kvShape(), pages);
    this.#memory = new GroupMemory(sizes, buffer);
    const link = new Link(this.#place, this.#memory, signals ?? new SharedSignals(this.#memory.signals));
    const parts = { device, decoder: this.#decoder, workspace: this.#workspace, kv, limits: sizes.limits, place: this.#place, link };
    this.#rank = new Rank(parts);
    await this.#rank.warmUp();
  }

  /** Executes the step that lies at a place of the group's memory. */
  async step(place: number): Promise<void> {
    await this.#rank.step(this.#memory.places[place]!);
  }

  close(): void {
    // Nothing was opened where the ranks before failed to.
    (this.#device as Device | undefined)?.close();
  }

  #kvShape() {
    const { layers, kvHeads, headDim } = this.#decoder.shape;
    return { layers, kvHeads, headDim, pageSize: this.#model.pageSize, dtype: this.#model.kvType };
  }
}
