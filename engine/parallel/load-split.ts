/** Builds all ranks of a split chat model and the runner that drives them. */
import type { AdapterInfo, MemoryUse } from '../api.ts';
import { BlockTable } from '../cache/block-table.ts';
import { chatAdapters } from '../config.ts';
import { splitOf } from '../config.ts';
import type { EngineConfig } from '../config.ts';
import type { Device } from '../gpu/device.ts';
import { KernelFault } from '../gpu/kernel-fault.ts';
import type { DecoderShape } from '../models/decoder.ts';
import type { Shard } from '../models/shard.ts';
import { largestWindow, withinContext } from '../ops/kv.ts';
import { longestWithin } from '../runner/memory-plan.ts';
import type { StepLimits } from '../runner/step-input.ts';
import { ceilDiv } from '../util/math.ts';
import { GroupMemory, counterCount } from './group-memory.ts';
import type { GroupSizes, Topology } from './group-memory.ts';
import type { RankPlace } from './link.ts';
import { ParallelRunner } from './parallel-runner.ts';
import type { ChatModel, LoadedRank, OpenedRank, RankKernels, StartRequest, StartedRank } from './rank-operations.ts';
import { localRank, workerRank } from './rank-port.ts';
import type { RankPort } from './rank-port.ts';
import { LocalSignals, SharedSignals } from './signals.ts';
import type { Signals } from './signals.ts';

/** Largest sizes of one step. */
export type BatchLimits = Pick<StepLimits, 'maxRunning' | 'prefillChunk' | 'draftRows' | 'headDrafts' | 'promptsApart' | 'loraColumns'>;

/** What bounds a step, over all ranks: the smallest binding size, and the widest rows of activations (`widestRow`) and logits (`vocabulary`). */
export interface Bounds {
  readonly maxBindingBytes: number;
  readonly software: boolean;
  /** Whether some adapter has subgroup matrices for prompts. */
  readonly matrices: boolean;
  readonly widestRow: number;
  readonly vocabulary: number;
}

export interface SplitRequest {
  readonly model: ChatModel;
  readonly shape: DecoderShape;
  readonly config: EngineConfig;
  readonly limits: (bounds: Bounds) => BatchLimits;
}

export interface SplitChat {
  readonly runner: ParallelRunner;
  readonly table: BlockTable;
  readonly limits: BatchLimits;
  readonly pages: number;
  /** KV pages of layers with a sliding window. */
  readonly windowPages: number;
  readonly context: number;
  readonly parameters: number;
  readonly weightBytes: number;
  /** Memory plan of each rank. */
  readonly memory: readonly MemoryUse[];
  readonly adapters: readonly AdapterInfo[];
}

/** Loads a model on all its ranks. `device` is the engine's own, whose counters show the watchdog that steps make progress. Closes the ranks if it throws. */
export async function loadSplit(device: Device, request: SplitRequest): Promise<SplitChat> {
  const { config } = request;
  const topology = splitOf(config);
  const count = topology.tpSize * topology.ppSize;
  const { platform } = device;
  const threads = config.rankThreads && platform.startWorker !== undefined;
  let signals: Signals | undefined;
  const local = (): Signals => (signals ??= new LocalSignals(counterCount(topology)));
  const spawn = (): RankPort => {
    if (!threads) return localRank(platform, local);
    return workerRank(platform.startWorker!(new URL(/* @vite-ignore */ './rank-worker.ts', import.meta.url)));
  };
  const ranks = Array.from({ length: count }, spawn);
  try {
    return await build(device, request, topology, ranks, threads ? undefined : local());
  } catch (error) {
    await Promise.allSettled(ranks.map((rank) => rank.close()));
    throw error;
  }
}

async function build(
  device: Device,
  request: SplitRequest,
  topology: Topology,
  ranks: readonly RankPort[],
  local: Signals | undefined,
): Promise<SplitChat> {
  const { model, shape, config } = request;
  const opened: OpenedRank[] = [];
  // In sequence, because environment variables choose the driver while an adapter is opened.
  const names = chatAdapters(config);
  const avoid = [...device.caps.avoid];
  for (const [i, rank] of ranks.entries()) opened.push(await rank.open({ adapter: names[i], avoid }));
  const cuts = await layerCuts(shape.layers, topology, config, ranks, opened);
  const loaded = await Promise.all(
    ranks.map((rank, i) =>
      rank.load({ model: modelOf(device, request, i), place: placeOf(topology, i), shard: shardOf(topology, i, cuts) }),
    ),
  );
  const batch = request.limits({
    maxBindingBytes: Math.min(...opened.map(({ maxBindingBytes }) => maxBindingBytes)),
    software: opened.some(({ adapter }) => adapter.software),
    matrices: opened.some(({ matrices }) => matrices),
    widestRow: Math.max(...loaded.map(({ widestRow }) => widestRow)),
    vocabulary: Math.max(...loaded.map(({ tokens }) => tokens)),
  });
  const kv = { layers: withinContext(shape.pages, model.context) };
  const hasWindows = largestWindow(kv) !== undefined;
  const asked = { ...batch, hasWindows, context: model.context, columns: ceilDiv(model.context, model.pageSize), vocabulary: shape.vocabulary }; // prettier-ignore
  const memory: MemoryUse[] = [];
  // In sequence, because free memory may have to be found by trial allocation.
  for (const rank of ranks) memory.push(await rank.reserve(asked));
  const pages = Math.min(...memory.map(({ kvPages }) => kvPages));
  // Not every rank has layers with a sliding window.
  const windowPages = hasWindows ? Math.min(...memory.flatMap((use) => use.windowPages ?? [])) : 0;
  const context = longestWithin({ kvPages: pages, windowPages, pageSize: model.pageSize }, kv, model.context, batch.prefillChunk);
  const table = new BlockTable(batch.maxRunning, ceilDiv(context, model.pageSize), { windows: hasWindows });
  const limits = { ...asked, columns: table.columns, context };
  const sizes: GroupSizes = { ...topology, limits, hidden: shape.hidden };
  const bytes = GroupMemory.bytes(sizes);
  const buffer = local ? new ArrayBuffer(bytes) : new SharedArrayBuffer(bytes);
  const kernels = await startAll(ranks, opened, { pages, windowPages, sizes, buffer }, config);
  const group = new GroupMemory(sizes, buffer);
  const signals = local ?? new SharedSignals(group.signals);
  const parts = { ranks, sizes, memory: group, signals, table, pageSize: model.pageSize, stats: device.stats, kernels };
  return {
    runner: new ParallelRunner(parts),
    table,
    limits: batch,
    pages,
    windowPages,
    context,
    memory,
    adapters: opened.map(({ adapter }) => adapter),
    ...totals(topology, loaded),
  };
}

/**
 * Starts all ranks. Throws KernelFault with the kernels that fail on any of them, so that all are loaded again without these. Ranks start one after the other if
 * kernels are tuned, since the first rank on an adapter chooses for the others there, and if ranks share a software adapter, so that the others find the first one's
 * compiled kernels in the driver's cache.
 */
async function startAll(
  ranks: readonly RankPort[],
  opened: readonly OpenedRank[],
  request: StartRequest,
  { autotune }: EngineConfig,
): Promise<RankKernels> {
  const chosen = new Map<string, Readonly<Record<string, string>>>();
  const start = async (rank: RankPort, i: number): Promise<StartedRank> => {
    const { name, software } = opened[i]!.adapter;
    // On a software adapter there is nothing to choose.
    const started = await rank.start({ ...request, ...(autotune && !software && { tuning: chosen.get(name) ?? {} }) });
    chosen.set(name, { ...chosen.get(name), ...Object.fromEntries(started.tuned.map((one) => [one.shape, one.chosen])) });
    return started;
  };
  const found: StartedRank[] = [];
  const names = opened.map(({ adapter }) => adapter.name);
  const share = opened.some(({ adapter }, i) => adapter.software && names.indexOf(adapter.name) < i);
  if (share || (autotune && opened.some(({ adapter }) => !adapter.software))) {
    for (const [i, rank] of ranks.entries()) found.push(await start(rank, i));
  } else found.push(...(await Promise.all(ranks.map(start))));
  const failed = found.findIndex(({ faults }) => faults.length > 0);
  const byLabel = new Map(found.flatMap(({ faults }) => faults).map((fault) => [fault.label, fault]));
  if (failed >= 0) throw new KernelFault(opened[failed]!.adapter.name, [...byLabel.values()]);
  const tuned = found.flatMap(({ tuned }) => tuned);
  return {
    tested: found.reduce((sum, { tested }) => sum + tested, 0),
    // Each choice once, from the rank that measured it.
    tuned: tuned.filter(({ shape }, i) => tuned.findIndex((other) => other.shape === shape) === i),
  };
}

/** The model as one rank loads it. Ranks on the same adapter, and the engine's other models there, share its memory, unless the operator sets the memory of each device. */
function modelOf(device: Device, { model, config }: SplitRequest, index: number): ChatModel {
  if (config.deviceMemory !== undefined) return model;
  const names = chatAdapters(config);
  const sharing = names.filter((other) => other === names[index]).length;
  // The engine's own device for chat is on the adapter of the first rank.
  const otherBytes = names[index] === names[0] ? device.stats.bufferBytes / sharing : 0;
  return { ...model, memFractionStatic: model.memFractionStatic / sharing, otherBytes };
}

function placeOf({ tpSize, ppSize }: Topology, index: number): RankPlace {
  return { tpSize, ppSize, rank: index % tpSize, stage: Math.floor(index / tpSize) };
}

function shardOf(topology: Topology, index: number, cuts: readonly number[]): Shard {
  const { rank, stage, tpSize } = placeOf(topology, index);
  return { rank, ranks: tpSize, layers: { from: cuts[stage]!, to: cuts[stage + 1]! } };
}

/** Sums over the ranks. Parameters are counted by the first rank of each stage, bytes by all. */
function totals({ tpSize }: Topology, loaded: readonly LoadedRank[]): { readonly parameters: number; readonly weightBytes: number } {
  return {
    parameters: loaded.reduce((sum, { parameters }, i) => sum + (i % tpSize === 0 ? parameters : 0), 0),
    weightBytes: loaded.reduce((sum, { weightBytes }) => sum + weightBytes, 0),
  };
}

/** First layer of every stage, and the number of layers. The caller has checked (`expectStages`) that there are enough. */
async function layerCuts(
  layers: number,
  { tpSize, ppSize }: Topology,
  { ppSplit }: EngineConfig,
  ranks: readonly RankPort[],
  opened: readonly OpenedRank[],
): Promise<readonly number[]> {
  if (ppSplit !== 'auto') return ppSplit.reduce<number[]>((cuts, count) => [...cuts, cuts.at(-1)! + count], [0]);
  const alike = opened.every(({ adapter }) => adapter.name === opened[0]!.adapter.name);
  // In sequence, because software adapters share the CPU.
  const speeds: number[] = [];
  for (const rank of ranks) speeds.push(alike || ppSize === 1 ? 1 : await rank.measure());
  const stages = Array.from({ length: ppSize }, (_, stage) => Math.min(...speeds.slice(stage * tpSize, (stage + 1) * tpSize)));
  return dealLayers(layers, stages);
}

/** Distributes layers over consecutive stages in proportion to their speeds, at least one each; returns the first layer of every stage, and the number of layers. */
export function dealLayers(layers: number, speeds: readonly number[]): readonly number[] {
  const total = speeds.reduce((sum, speed) => sum + speed, 0);
  const cuts = [0];
  let sum = 0;
  speeds.forEach((speed, i) => {
    sum += speed;
    const wanted = Math.round((layers * sum) / total);
    cuts.push(Math.min(Math.max(wanted, cuts[i]! + 1), layers - (speeds.length - 1 - i)));
  });
  return cuts;
}
