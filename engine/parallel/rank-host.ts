/** Builds one rank, in steps that all ranks take together: device, weights, activations, KV pages. */
import type { MemoryUse } from '../api.ts';
import { Device } from '../gpu/device.ts';
import type { DeviceStats } from '../gpu/caps.ts';
import { KernelFault } from '../gpu/kernel-fault.ts';
import { allocate, deviceMemory } from '../gpu/memory.ts';
import { createDecoderKV } from '../models/decoder.ts';
import type { Decoder, DecoderWorkspace } from '../models/decoder.ts';
import { definitionFor } from '../models/remote.ts';
import { WeightLoader } from '../models/weight-loader.ts';
import type { Platform } from '../platform/platform.ts';
import { byWindow, firstPages, withinContext } from '../ops/kv.ts';
import { hasMatrices } from '../ops/linear-matrix.ts';
import { planMemory } from '../runner/memory-plan.ts';
import type { StepLimits } from '../runner/step-input.ts';
import { beginTuning, endTuning } from '../runner/tuned-kernels.ts';
import { describeStored } from '../util/memory.ts';
import { sizeOf } from '../util/math.ts';
import type { Checkpoint } from '../weights/checkpoint.ts';
import { withWeights } from '../weights/model-folder.ts';
import { openModelFolder } from '../weights/open-model-folder.ts';
import { GroupMemory } from './group-memory.ts';
import { Link } from './link.ts';
import type { RankPlace } from './link.ts';
import { measureSpeed } from './measure.ts';
import { Rank } from './rank.ts';
import type {
  ChatModel,
  LoadRequest,
  LoadedRank,
  OpenRequest,
  OpenedRank,
  RankOperations,
  StartRequest,
  StartedRank,
} from './rank-operations.ts';
import { SharedSignals } from './signals.ts';
import type { Signals } from './signals.ts';

/** Implements RANK_OPERATIONS. */
export class RankHost implements RankOperations {
  readonly #platform: Platform;
  readonly #signals: (() => Signals) | undefined;
  #device!: Device;
  #lose!: (reason: string) => void;
  #model!: ChatModel;
  #place!: RankPlace;
  #decoder!: Decoder;
  #workspace!: DecoderWorkspace;
  #bytes = { others: 0, weights: 0 };
  #memory!: GroupMemory;
  #rank!: Rank;

  /** `signals` gives the group's signals if all ranks share a thread; otherwise they are in the group's memory. */
  constructor(platform: Platform, signals?: () => Signals) {
    this.#platform = platform;
    this.#signals = signals;
  }

  /** Resolves with the reason when the device is lost. */
  readonly lost = new Promise<string>((resolve) => (this.#lose = resolve));

  /** Counters of the device; undefined before it is opened. */
  get stats(): DeviceStats | undefined {
    return (this.#device as Device | undefined)?.stats;
  }

  async open({ adapter, avoid }: OpenRequest): Promise<OpenedRank> {
    this.#device = await Device.create(this.#platform, { avoid, ...(adapter !== undefined && { name: adapter }) });
    void this.#device.lost.then(this.#lose);
    const { info, caps } = this.#device;
    return { adapter: info, maxBindingBytes: caps.maxBindingBytes, matrices: hasMatrices(caps) };
  }

  async measure(): Promise<number> {
    return (await measureSpeed(this.#device)).gigabytesPerSecond;
  }

  async load({ model, place, shard }: LoadRequest): Promise<LoadedRank> {
    this.#model = model;
    this.#place = place;
    const device = this.#device;
    const others = device.stats.bufferBytes;
    const folder = await openModelFolder(this.#platform, model.path);
    const definition = await definitionFor(folder, model.configJson, model.trustRemoteCode);
    const loadFrom = async (checkpoint: Checkpoint): Promise<Decoder> => {
      const loader = new WeightLoader(device, checkpoint, model.storage);
      const decoder = await definition.load(loader, model.configJson, model.context, shard);
      this.#platform.log(`${model.id}, rank ${place.rank} of stage ${place.stage}: matrices ${describeStored(loader.matrices)}`);
      return decoder;
    };
    this.#decoder = await withWeights(folder, (checkpoint) => allocate(device, `the weights of ${model.id}`, () => loadFrom(checkpoint)));
    const weights = device.stats.bufferBytes - others;
    this.#bytes = { others: others + model.otherBytes, weights };
    const { parameters, shape, tokens } = this.#decoder;
    return { parameters, weightBytes: weights, widestRow: shape.widestRow, tokens: sizeOf(tokens) };
  }

  async reserve(limits: StepLimits): Promise<MemoryUse> {
    const { maxRunning, prefillChunk, draftRows } = limits;
    const device = this.#device;
    const { id, context, memFractionStatic: fraction, deviceMemory: given } = this.#model;
    this.#workspace = this.#decoder.createWorkspace(device, maxRunning + prefillChunk, maxRunning + draftRows);
    const { others, weights } = this.#bytes;
    const { bufferBytes } = device.stats;
    const own = Rank.bytes(device, this.#decoder, limits, this.#place, this.#workspace.logits !== undefined);
    return planMemory({
      model: id,
      memory: await deviceMemory(device, given),
      fraction,
      others,
      weights,
      activations: bufferBytes + this.#model.otherBytes - others - weights + own,
      kv: this.#kvShape(),
      maxRunning,
      context,
      prefillChunk,
      maxBindingBytes: device.caps.maxBindingBytes,
    });
  }

  async start({ pages, windowPages, sizes, buffer, tuning }: StartRequest): Promise<StartedRank> {
    const device = this.#device;
    const shape = this.#kvShape();
    const { whole, windowed } = byWindow(shape);
    const windows = { limit: windowPages, first: firstPages(device.caps, windowed, windowPages) };
    const sizesOfPages = { limit: pages, first: firstPages(device.caps, whole, pages), windows };
    const kv = await allocate(device, 'the pages of keys and values', () => createDecoderKV(device, this.#decoder, shape, sizesOfPages));
    this.#memory = new GroupMemory(sizes, buffer);
    const link = new Link(this.#place, this.#memory, this.#signals?.() ?? new SharedSignals(this.#memory.signals));
    const parts = { device, decoder: this.#decoder, workspace: this.#workspace, kv, limits: sizes.limits, place: this.#place, link };
    this.#rank = new Rank(parts);
    if (tuning) await beginTuning(device, { chosen: tuning });
    try {
      await this.#rank.warmUp();
    } catch (error) {
      if (error instanceof KernelFault) return { faults: error.faults, tested: 0, tuned: [] };
      throw error;
    }
    return { faults: [], tuned: await endTuning(device), tested: device.tested.size };
  }

  reserveProcessing(): Promise<void> {
    return this.#rank.reserveProcessing();
  }

  async step(place: number): Promise<void> {
    await this.#rank.step(this.#memory.places[place]!);
  }

  close(): void {
    // No device was opened if an earlier rank failed.
    (this.#device as Device | undefined)?.close();
  }

  #kvShape() {
    const { context, pageSize, kvType: dtype } = this.#model;
    return { layers: withinContext(this.#decoder.shape.pages, context), pageSize, dtype };
  }
}
