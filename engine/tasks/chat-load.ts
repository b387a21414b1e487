/** Everything a chat engine is made of, from a model folder. */
import type { MemoryUse, ModelInfo } from '../api.ts';
import { BlockTable } from '../cache/block-table.ts';
import { PagePool } from '../cache/page-pool.ts';
import { prefillChunkSize, promptLookup, splitOf, storageType } from '../config.ts';
import type { EngineConfig, ModelSource } from '../config.ts';
import { EngineError } from '../errors.ts';
import type { DeviceStats } from '../gpu/caps.ts';
import type { Device } from '../gpu/device.ts';
import { allocate, deviceMemory } from '../gpu/memory.ts';
import { tokenIds } from '../models/llama/config.ts';
import { createDecoderKV } from '../models/decoder.ts';
import type { Decoder, DecoderDefinition, DecoderShape } from '../models/decoder.ts';
import { definitionFor } from '../models/remote.ts';
import { WeightLoader } from '../models/weight-loader.ts';
import type { BatchLimits, Bounds } from '../parallel/load-split.ts';
import type { SplitModel } from '../parallel/rank-operations.ts';
import type { Platform, PlatformWorker } from '../platform/platform.ts';
import { planMemory } from '../runner/kv-budget.ts';
import { ModelRunner } from '../runner/model-runner.ts';
import type { StepResult } from '../runner/model-runner.ts';
import type { Batch } from '../scheduler/batch.ts';
import { schedulePolicy } from '../scheduler/policy.ts';
import { Scheduler } from '../scheduler/scheduler.ts';
import type { SchedulerOptions } from '../scheduler/scheduler.ts';
import { samplingDefaults, shownDefaults } from '../sampling.ts';
import type { SamplingDefaults } from '../sampling.ts';
import { ChatTemplate } from '../text/chat-template.ts';
import { Grammars } from '../text/grammar.ts';
import { LongTexts } from '../text/long-texts.ts';
import { Tokenizer } from '../text/tokenizer.ts';
import { ceilDiv } from '../util/math.ts';
import { describeMemory } from '../util/memory.ts';
import { bytesAs } from '../weights/checkpoint.ts';
import type { Checkpoint } from '../weights/checkpoint.ts';
import { withWeights } from '../weights/model-folder.ts';
import type { ModelFolder } from '../weights/model-folder.ts';
import { openModelFolder } from '../weights/open-model-folder.ts';

/** Runs batches: on one device (ModelRunner) or on all ranks of a split model (ParallelRunner), which may be lost and must be closed. */
export interface ChatRunner {
  run(batch: Batch): StepResult;
  readonly lost?: Promise<string>;
  /** Counters of the ranks' devices. */
  readonly stats?: readonly DeviceStats[];
  close?(): Promise<void>;
}

/** What surrounds the runner: everything with a test of its own without a GPU. */
export interface ChatParts {
  readonly tokenizer: Tokenizer;
  readonly texts: LongTexts;
  readonly template: ChatTemplate;
  readonly scheduler: Scheduler;
  readonly pool: PagePool;
  readonly runner: ChatRunner;
  readonly samplingDefaults: SamplingDefaults;
  readonly eos: ReadonlySet<number>;
  readonly context: number;
  /** Answers that do not fit the context end at its edge instead of being refused. */
  readonly truncates: boolean;
  readonly vocabulary: number;
  /** The model writes `<think>` before its answer. */
  readonly thinks: boolean;
  readonly grammars: Grammars;
  /** Submit a step before the tokens of the one before are read. */
  readonly overlap: boolean;
  /** Heed the requests' priorities. */
  readonly priorities: boolean;
}

/** Loads a model folder, takes KV pages from what is left of the memory budget, compiles and warms up. */
export async function loadChat(
  device: Device,
  platform: Platform,
  source: ModelSource,
  config: EngineConfig,
): Promise<{ readonly info: ModelInfo; readonly parts: ChatParts }> {
  const folder = await openModelFolder(platform, source.path, source.id);
  const { id, path, format } = folder;
  const json = await folder.json('config.json');
  const generation = await folder.json('generation_config.json', { optional: true });
  const definition = await definitionFor(folder, json, config.trustRemoteCode);
  const shape = definition.parseConfig(json);
  const tokenizer = await Tokenizer.load(folder, shape.vocabulary);
  const template = await ChatTemplate.load(folder, tokenizer);
  const dtype = storageType(config.dtype);
  const kvType = config.kvCacheDtype === 'auto' ? dtype : config.kvCacheDtype;
  const model: ChatModel = {
    id,
    path,
    config: json,
    dtype,
    kvType,
    pageSize: config.pageSize,
    context: Math.min(shape.maxPositions, config.contextLength),
    memFractionStatic: config.memFractionStatic,
    deviceMemory: config.deviceMemory,
    otherBytes: 0,
    trustRemoteCode: config.trustRemoteCode,
  };
  const { tpSize, ppSize } = splitOf(config);
  const loaded =
    tpSize * ppSize > 1
      ? await loadSplitModel(device, model, shape, config)
      : await loadModel(device, folder, definition, model, shape, config);
  const { runner, table, limits, pages, context, parameters, weightBytes, memory } = loaded;
  const pool = new PagePool(pages);
  const scheduler = new Scheduler(pool, table, schedulerOptions(config, limits));
  platform.log(`${id}: memory ${describeMemory(memory)}; context ${context}, ${limits.maxRunning} sequences, prefill chunks of ${limits.prefillChunk}`); // prettier-ignore
  const { vocabulary } = shape;
  const sampling = samplingDefaults(generation, config.samplingDefaults);
  const info: ModelInfo = { id, task: 'chat', architecture: String(json['model_type']), ...(format !== undefined && { format }), parameters, weightBytes, contextLength: context, ownContextLength: shape.maxPositions, memory, sampling: shownDefaults(sampling), ...(loaded.ranks && { ranks: loaded.ranks }) }; // prettier-ignore
  const eos = new Set([...shape.eosTokenIds, ...tokenIds(generation['eos_token_id'])]);
  const parts: ChatParts = {
    tokenizer,
    texts: new LongTexts(platform, tokenizer, { path, size: vocabulary }),
    template,
    scheduler,
    pool,
    runner,
    samplingDefaults: sampling,
    eos,
    context,
    vocabulary,
    thinks: tokenizer.tokenId('<think>') !== undefined,
    grammars: grammarsOf(platform, tokenizer, vocabulary, [...eos]),
    overlap: !config.disableOverlapSchedule,
    priorities: config.enablePriorityScheduling,
    truncates: config.autoTruncateMaxTokens,
  };
  return { info, parts };
}

/** The model and how it is stored. */
type ChatModel = SplitModel;

/** A model on its devices, with a runner. */
interface LoadedModel {
  readonly runner: ChatRunner;
  readonly table: BlockTable;
  readonly limits: BatchLimits;
  readonly pages: number;
  readonly context: number;
  readonly parameters: number;
  readonly weightBytes: number;
  readonly memory: MemoryUse;
  readonly ranks?: ModelInfo['ranks'];
}

/** On one device. */
async function loadModel(
  device: Device,
  folder: ModelFolder,
  definition: DecoderDefinition,
  model: ChatModel,
  shape: DecoderShape,
  config: EngineConfig,
): Promise<LoadedModel> {
  const { id, dtype, kvType, pageSize, context: wanted } = model;
  const { layers, kvHeads, headDim } = shape;
  const kvShape = { layers, kvHeads, headDim, pageSize, dtype: kvType };
  const { maxBindingBytes, software } = device.caps;
  const limits = batchLimits({ maxBindingBytes, software, widestRow: shape.widestRow, vocabulary: shape.vocabulary }, config, wanted);
  const others = device.stats.bufferBytes;
  const memory = await deviceMemory(device, config.deviceMemory);
  const plan = (weights: number, activations: number): MemoryUse =>
    planMemory({ model: id, memory, fraction: config.memFractionStatic, others, weights, activations, kv: kvShape, maxRunning: limits.maxRunning, context: wanted, maxBindingBytes }); // prettier-ignore
  const load = async (checkpoint: Checkpoint): Promise<Decoder> => {
    // Before anything is loaded that cannot fit.
    plan(bytesAs(checkpoint, dtype), 0);
    return await definition.load(new WeightLoader(device, checkpoint, dtype), model.config, wanted);
  };
  const decoder = await withWeights(folder, (checkpoint) => allocate(device, `the weights of ${id}`, () => load(checkpoint)));
  const weightBytes = device.stats.bufferBytes - others;
  const workspace = decoder.createWorkspace(device, limits.maxRunning + limits.prefillChunk, limits.maxRunning + limits.draftRows);
  const use = plan(weightBytes, device.stats.bufferBytes - others - weightBytes);
  const pages = use.kvPages;
  const context = Math.min(wanted, pages * pageSize);
  const kv = await allocate(device, 'the pages of keys and values', () => createDecoderKV(device, decoder, kvShape, pages));
  const table = new BlockTable(limits.maxRunning, ceilDiv(context, pageSize));
  const runner = new ModelRunner(device, decoder, workspace, kv, table, { ...limits, context });
  await runner.warmUp();
  return { runner, table, limits, pages, context, parameters: decoder.parameters, weightBytes, memory: use };
}

/** Over several devices (engine/parallel). */
async function loadSplitModel(device: Device, model: ChatModel, shape: DecoderShape, config: EngineConfig): Promise<LoadedModel> {
  const limits = (bounds: Bounds): BatchLimits => batchLimits(bounds, config, model.context);
  // Most never need it, and a page would carry it.
  const { loadSplit } = await import('../parallel/load-split.ts');
  const { memory, adapters, ...loaded } = await loadSplit(device, { model, shape, config, limits });
  const ranks = memory.map((use, rank) => ({ adapter: adapters[rank]!.name, memory: use }));
  for (const [rank, { adapter, memory: use }] of ranks.entries()) {
    device.platform.log(`${model.id}, rank ${rank} on ${adapter}: memory ${describeMemory(use)}`);
  }
  // The rank with the fewest pages decides how many there are.
  return { ...loaded, ranks, memory: memory.reduce((least, use) => (use.kvPages < least.kvPages ? use : least)) };
}

/** What the scheduler needs to know of the settings. */
function schedulerOptions(config: EngineConfig, limits: BatchLimits): SchedulerOptions {
  return {
    ...limits,
    pageSize: config.pageSize,
    maxQueued: config.maxQueuedRequests,
    policy: schedulePolicy(config.schedulePolicy),
    prefixCache: !config.disableRadixCache,
    promptLookup: promptLookup(config),
    preemptionThreshold: config.enablePriorityScheduling ? config.prioritySchedulingPreemptionThreshold : undefined,
  };
}

/** Sequences that may have all their guesses verified in one step; more share the rows. Verifying pays while a step's rows are few. */
const GUESSING = 8;

/** The adapter's bindings are limited. */
function batchLimits({ maxBindingBytes, software, widestRow, vocabulary }: Bounds, config: EngineConfig, context: number): BatchLimits {
  const logitRows = Math.floor(maxBindingBytes / 4 / vocabulary);
  const maxRunning = Math.min(config.maxRunningRequests, logitRows);
  const draftRows = Math.min(GUESSING * (promptLookup(config)?.draftTokens ?? 0), logitRows - maxRunning);
  const rows = Math.floor(maxBindingBytes / 4 / widestRow);
  const prefillChunk = Math.min(prefillChunkSize(config.chunkedPrefillSize, software), context, rows - maxRunning);
  if (maxRunning < 1 || prefillChunk < 1) {
    throw new EngineError('out_of_memory', `a row of ${widestRow} or ${vocabulary} values does not fit this adapter's bindings of ${maxBindingBytes} bytes`); // prettier-ignore
  }
  return { maxRunning, prefillChunk, draftRows };
}

function grammarsOf(platform: Platform, tokenizer: Tokenizer, vocabulary: number, stopTokenIds: readonly number[]): Grammars {
  const startWorker = (): PlatformWorker => {
    if (!platform.startGrammarWorker) throw new EngineError('unsupported', 'this page has no grammar library');
    return platform.startGrammarWorker(new URL(/* @vite-ignore */ '../text/grammar-worker.ts', import.meta.url));
  };
  return new Grammars(startWorker, () => {
    const { tokens, type } = tokenizer.vocabulary;
    // Checkpoints pad their vocabulary: tokens that nothing spells can never be allowed.
    return { tokens: Array.from({ length: vocabulary }, (_, id) => tokens[id] ?? ''), type, stopTokenIds };
  });
}
