/** Loads the parts of a chat engine from a model folder. */
import type { KernelReport, MemoryUse, ModelInfo, ModelMemory } from '../api.ts';
import { BlockTable } from '../cache/block-table.ts';
import { PagePool } from '../cache/page-pool.ts';
import { SOFTWARE_CHUNK, headDrafts, prefillChunkSize, promptLookup, splitOf, weightStorage } from '../config.ts';
import type { EngineConfig, ModelSource } from '../config.ts';
import { EngineError } from '../errors.ts';
import type { DeviceStats } from '../gpu/caps.ts';
import type { Device } from '../gpu/device.ts';
import { allocate } from '../gpu/memory.ts';
import { MAX_WORKGROUPS } from '../gpu/recorder.ts';
import { tokenIds } from '../models/config-fields.ts';
import { createDecoderKV, weightRules, workspaceBytes } from '../models/decoder.ts';
import type { Decoder, DecoderDefinition, DecoderShape } from '../models/decoder.ts';
import { LoraSet } from '../models/lora-set.ts';
import { definitionFor } from '../models/remote.ts';
import { WeightLoader } from '../models/weight-loader.ts';
import type { BatchLimits, Bounds } from '../parallel/load-split.ts';
import type { ChatModel } from '../parallel/rank-operations.ts';
import type { Platform, PlatformWorker } from '../platform/platform.ts';
import { hasMatrices } from '../ops/linear-matrix.ts';
import { byWindow, firstPages, largestWindow, withinContext } from '../ops/kv.ts';
import type { KVCache, KVShape } from '../ops/kv.ts';
import { firstSlots } from '../ops/states.ts';
import { keptStates } from '../runner/head-steps.ts';
import { longestWithin, runningWithin } from '../runner/memory-plan.ts';
import type { ModelDemand } from '../runner/memory-plan.ts';
import { ModelRunner } from '../runner/model-runner.ts';
import type { StepResult } from '../runner/model-runner.ts';
import type { Batch } from '../scheduler/batch.ts';
import { schedulePolicy } from '../scheduler/policy.ts';
import { PrefillPace, firstChunk } from '../scheduler/prefill-pace.ts';
import { Scheduler } from '../scheduler/scheduler.ts';
import type { SchedulerOptions } from '../scheduler/scheduler.ts';
import { samplingDefaults, shownDefaults } from '../sampling.ts';
import type { SamplingDefaults } from '../sampling.ts';
import { ChatTemplate } from '../text/chat-template.ts';
import { Grammars } from '../text/grammar.ts';
import { middleFormOf } from '../text/fill-middle.ts';
import type { MiddleForm } from '../text/fill-middle.ts';
import { LongTexts } from '../text/long-texts.ts';
import { HARMONY_ENDS } from '../text/harmony.ts';
import { Tokenizer } from '../text/tokenizer.ts';
import { ceilDiv } from '../util/math.ts';
import { describeMemory, describeStored } from '../util/memory.ts';
import type { Checkpoint } from '../weights/checkpoint.ts';
import { inOwnWords, withWeights } from '../weights/model-folder.ts';
import type { ModelFolder } from '../weights/model-folder.ts';
import { openModelFolder } from '../weights/open-model-folder.ts';
import { expectCuts, expectHead, refuseForLoras, refuseForStates, withHeadIfAsked } from './chat-refusals.ts';
import type { Prepared } from './prepared.ts';
import { weightDemand } from '../weights/storage.ts';

/** Runs batches: ModelRunner on one device, or ParallelRunner on the ranks of a split model, which may be lost and must be closed. */
export interface ChatRunner {
  run(batch: Batch): StepResult;
  /** Makes room for steps that process logits. Throws EngineError('out_of_memory') when the device has none. */
  reserveProcessing?(): Promise<void>;
  readonly lost?: Promise<string>;
  /** Counters of the ranks' devices. */
  readonly stats?: readonly DeviceStats[];
  /** Self-tests passed and kernels chosen by the ranks. */
  readonly kernels?: Omit<KernelReport, 'replaced'>;
  close?(): Promise<void>;
}

/** The parts of a chat engine. All but the runner are tested without a GPU. */
export interface ChatParts {
  readonly tokenizer: Tokenizer;
  readonly texts: LongTexts;
  readonly template: ChatTemplate;
  readonly scheduler: Scheduler;
  readonly pool: PagePool;
  readonly runner: ChatRunner;
  readonly samplingDefaults: SamplingDefaults;
  readonly eos: ReadonlySet<number>;
  /** How the model is asked for what stands between two texts, if it has tokens for that. */
  readonly middle?: MiddleForm | undefined;
  readonly context: number;
  /** Whether an answer whose max_tokens exceeds the context is cut there instead of refused. */
  readonly truncates: boolean;
  readonly vocabulary: number;
  /** Ids of the model's LoRA adapters; absent = it has none. */
  readonly loras?: readonly string[] | undefined;
  readonly grammars: Grammars;
  /** Whether a step is submitted before the tokens of the one before are read. */
  readonly overlap: boolean;
  /** Whether requests' priorities are heeded. */
  readonly priorities: boolean;
}

/** A loaded chat model: its description, and the parts of its engine. */
export interface LoadedChat {
  readonly info: ModelInfo;
  readonly parts: ChatParts;
}

/**
 * Reads a model folder's configuration and headers and plans its memory; `load` then loads the weights, allocates the KV pages of the plan, compiles the kernels
 * and warms them up. Throws EngineError if the model cannot be loaded with these settings.
 */
export async function prepareChat(
  device: Device,
  platform: Platform,
  source: ModelSource,
  config: EngineConfig,
): Promise<Prepared<LoadedChat>> {
  const folder = await openModelFolder(platform, source.path, source.id);
  return inOwnWords(folder, prepareFolder(device, platform, { source, folder, config }));
}

async function prepareFolder(
  device: Device,
  platform: Platform,
  { source, folder, config }: { readonly source: ModelSource; readonly folder: ModelFolder; readonly config: EngineConfig },
): Promise<Prepared<LoadedChat>> {
  const { id, path } = folder;
  const configJson = await folder.json('config.json');
  const definition = withHeadIfAsked(id, await definitionFor(folder, configJson, config.trustRemoteCode), config);
  const shape = definition.parseConfig(configJson);
  if (shape.state) refuseForStates(id, config);
  const { loras = [] } = source;
  if (loras.length > 0) refuseForLoras(config);
  const storage = weightStorage(config);
  const model: ChatModel = {
    id,
    path,
    configJson,
    storage,
    kvType: config.kvCacheDtype === 'auto' ? storage.float : config.kvCacheDtype,
    pageSize: config.pageSize,
    context: Math.min(shape.maxPositions, config.contextLength),
    memFractionStatic: config.memFractionStatic,
    deviceMemory: config.deviceMemory,
    otherBytes: 0,
    trustRemoteCode: config.trustRemoteCode,
  };
  const opened: OpenedChat = { source, folder, model, shape, config };
  const { tpSize, ppSize } = splitOf(config);
  if (tpSize * ppSize > 1) {
    expectCuts(definition, configJson, shape, config);
    return { load: () => loadChat(platform, opened, () => loadSplitModel(device, opened)) };
  }
  const ofLoras = await LoraSet.with(platform, loras, model.configJson, async ({ bytes, columns }) => ({ bytes, columns }));
  const limits = { ...limitsOn(device, platform, opened), loraColumns: ofLoras.columns };
  const rows = limits.maxRunning + limits.prefillChunk;
  const kv = kvShapeOf(model, shape);
  // Rotary table: sine and cosine for every pair of channels.
  const rotaryBytes = 4 * model.context * shape.rotaryChannels;
  const demand: ModelDemand = {
    id,
    task: 'chat',
    ...(await withWeights(folder, async (checkpoint) => {
      if (config.speculativeMtp) expectHead(id, checkpoint);
      const { weights, ...demand } = weightDemand(checkpoint, storage, weightRules(definition, configJson));
      return { ...demand, weights: weights + ofLoras.bytes };
    })),
    activations:
      rotaryBytes +
      workspaceBytes(definition, device, configJson, { rows, logitRows: limits.maxRunning + limits.draftRows, kept: keptStates(limits) }) +
      ModelRunner.bytes(device, shape, { ...limits, hasWindows: hasWindows(kv), context: model.context, pageSize: model.pageSize }),
    pages: {
      kv,
      state: shape.state,
      speculative: limits.draftRows > 0,
      maxRunning: limits.maxRunning,
      context: model.context,
      prefillChunk: limits.prefillChunk,
    },
  };
  const load = (memory: ModelMemory | undefined): Promise<LoadedModel> => loadModel(device, opened, definition, limits, memory!.pages!);
  return { demand, load: (memory) => loadChat(platform, opened, () => load(memory)) };
}

/** A model whose configuration has been read. */
interface OpenedChat {
  readonly source: ModelSource;
  readonly folder: ModelFolder;
  readonly model: ChatModel;
  readonly shape: DecoderShape;
  readonly config: EngineConfig;
}

async function loadChat(
  platform: Platform,
  { source, folder, model, shape, config }: OpenedChat,
  load: () => Promise<LoadedModel>,
): Promise<LoadedChat> {
  const { id, path, format } = folder;
  const generation = await folder.json('generation_config.json', { optional: true });
  const sampling = samplingDefaults(generation, config.samplingDefaults, source.sampling);
  const tokenizer = await Tokenizer.load(folder, shape.vocabulary);
  const template = await ChatTemplate.load(folder, tokenizer);
  const loaded = await load();
  const { runner, table, limits, pages, context, parameters, weightBytes, memory } = loaded;
  const pool = new PagePool(pages);
  const window = largestWindow(kvShapeOf(model, shape));
  const windows = window === undefined ? undefined : { window, pages: loaded.windowPages };
  const scheduler = new Scheduler(pool, table, {
    ...schedulerOptions(config, limits, loaded.parameters),
    stateSlots: memory.stateSlots,
    windows,
  });
  platform.log(`${id}: memory ${describeMemory(memory)}; context ${context}, ${limits.maxRunning} sequences, prefill chunks of ${limits.prefillChunk}`); // prettier-ignore
  const { vocabulary } = shape;
  const info: ModelInfo = { id, task: 'chat', architecture: String(model.configJson['model_type']), ...(format !== undefined && { format }), parameters, weightBytes, contextLength: context, ownContextLength: shape.maxPositions, memory, sampling: shownDefaults(sampling), numerics: limits.promptsApart ? 'fast' : 'invariant', ...(source.loras && { loras: source.loras.map((lora) => lora.id) }), ...(loaded.ranks && { ranks: loaded.ranks }) }; // prettier-ignore
  const ends = template.isHarmony ? HARMONY_ENDS.map((end) => tokenizer.tokenId(end)) : [];
  const eos = new Set([...shape.eosTokenIds, ...tokenIds(generation['eos_token_id']), ...tokenIds(ends)]);
  const parts: ChatParts = {
    tokenizer,
    texts: new LongTexts(platform, tokenizer, { path, size: vocabulary }),
    template,
    scheduler,
    pool,
    runner,
    samplingDefaults: sampling,
    eos,
    middle: middleFormOf((spelling) => tokenizer.tokenId(spelling)),
    context,
    vocabulary,
    grammars: grammarsOf(platform, tokenizer, vocabulary, [...eos]),
    overlap: !config.disableOverlapSchedule,
    priorities: config.enablePriorityScheduling,
    truncates: config.autoTruncateMaxTokens,
    loras: source.loras?.map((lora) => lora.id),
  };
  return { info, parts };
}

/** A model that is loaded on its devices, with its runner. */
interface LoadedModel {
  readonly runner: ChatRunner;
  readonly table: BlockTable;
  readonly limits: BatchLimits;
  readonly pages: number;
  /** KV pages of layers with a sliding window. */
  readonly windowPages: number;
  readonly context: number;
  readonly parameters: number;
  readonly weightBytes: number;
  readonly memory: MemoryUse;
  readonly ranks?: ModelInfo['ranks'];
}

/** Largest step of a model on one device. */
function limitsOn(device: Device, platform: Platform, opened: OpenedChat): BatchLimits {
  const { maxBindingBytes, software } = device.caps;
  const { widestRow, vocabulary } = opened.shape;
  return batchLimits(platform, opened, { maxBindingBytes, software, matrices: hasMatrices(device.caps), widestRow, vocabulary });
}

function kvShapeOf({ pageSize, kvType: dtype, context }: ChatModel, { pages }: DecoderShape): KVShape {
  return { layers: withinContext(pages, context), pageSize, dtype };
}

function hasWindows(shape: KVShape): boolean {
  return largestWindow(shape) !== undefined;
}

/** Loads a model on one device. */
async function loadModel(
  device: Device,
  { source, folder, model, shape }: OpenedChat,
  definition: DecoderDefinition,
  largest: BatchLimits,
  memory: MemoryUse,
): Promise<LoadedModel> {
  const { id, storage, pageSize, context: wanted } = model;
  const { kvPages: pages, windowPages = 0, stateSlots: slots } = memory;
  const limits =
    slots === undefined ? largest : { ...largest, maxRunning: Math.min(largest.maxRunning, runningWithin(slots, largest.draftRows > 0)) };
  const before = device.stats.bufferBytes;
  const { platform } = device;
  const load = async (checkpoint: Checkpoint, loras: LoraSet): Promise<Decoder> => {
    const loader = new WeightLoader(device, checkpoint, storage, { loras });
    const loaded = await definition.load(loader, model.configJson, wanted);
    loras.expectTaken(String(model.configJson['model_type']));
    platform.log(`${id}: matrices ${describeStored(loader.matrices)}`);
    return loaded;
  };
  const loadWith = (checkpoint: Checkpoint): Promise<Decoder> => LoraSet.with(platform, source.loras ?? [], model.configJson, (loras) => load(checkpoint, loras)); // prettier-ignore
  const decoder = await withWeights(folder, (checkpoint) => allocate(device, `the weights of ${id}`, () => loadWith(checkpoint)));
  const weightBytes = device.stats.bufferBytes - before;
  const workspace = decoder.createWorkspace(
    device,
    limits.maxRunning + limits.prefillChunk,
    limits.maxRunning + limits.draftRows,
    keptStates(limits),
  );
  const kvShape = kvShapeOf(model, shape);
  const context = longestWithin(memory, kvShape, wanted, limits.prefillChunk);
  const { whole, windowed } = byWindow(kvShape);
  const make = (): Promise<KVCache> =>
    createDecoderKV(
      device,
      decoder,
      kvShape,
      {
        limit: pages,
        first: firstPages(device.caps, whole, pages),
        windows: { limit: windowPages, first: firstPages(device.caps, windowed, windowPages) },
      },
      slots === undefined ? undefined : { limit: slots, first: firstSlots(device.caps, slots) },
    );
  const kv = await allocate(device, 'the pages of keys and values', make);
  const table = new BlockTable(limits.maxRunning, ceilDiv(context, pageSize), { windows: hasWindows(kvShape) });
  const runner = new ModelRunner(device, decoder, workspace, kv, table, { ...limits, hasWindows: hasWindows(kvShape), context });
  await runner.warmUp();
  return { runner, table, limits, pages, windowPages, context, parameters: decoder.parameters, weightBytes, memory };
}

/** Loads a model split over several devices (engine/parallel). */
async function loadSplitModel(device: Device, opened: OpenedChat): Promise<LoadedModel> {
  const { model, shape, config } = opened;
  const limits = (bounds: Bounds): BatchLimits => batchLimits(device.platform, opened, bounds);
  // Imported on demand, because few need it, and pages should not contain it.
  const { loadSplit } = await import('../parallel/load-split.ts');
  const { memory, adapters, ...loaded } = await loadSplit(device, { model, shape, config, limits });
  const ranks = memory.map((use, rank) => ({ adapter: adapters[rank]!.name, memory: use }));
  for (const [rank, { adapter, memory: use }] of ranks.entries()) {
    device.platform.log(`${model.id}, rank ${rank} on ${adapter}: memory ${describeMemory(use)}`);
  }
  // The rank with the fewest KV pages decides for all.
  return { ...loaded, ranks, memory: memory.reduce((least, use) => (use.kvPages < least.kvPages ? use : least)) };
}

/** The scheduler's options, from the settings. */
function schedulerOptions(config: EngineConfig, limits: BatchLimits, parameters: number): SchedulerOptions {
  const isPaced = config.chunkedPrefillSize === 'auto' && limits.prefillChunk > SOFTWARE_CHUNK;
  return {
    ...limits,
    pace: isPaced ? new PrefillPace(firstChunk(parameters, SOFTWARE_CHUNK), limits.prefillChunk) : undefined,
    pageSize: config.pageSize,
    maxQueued: config.maxQueuedRequests,
    policy: schedulePolicy(config.schedulePolicy),
    prefixCache: !config.disableRadixCache,
    promptLookup: promptLookup(config),
    headDrafts: headDrafts(config),
    preemptionThreshold: config.enablePriorityScheduling ? config.prioritySchedulingPreemptionThreshold : undefined,
  };
}

/** Sequences whose drafts can all be verified in one step; more share the rows, since verifying pays only while a step has few rows. */
const DRAFTING_SEQUENCES = 8;

/**
 * The largest step that the settings and the adapter's binding size allow. Drafts come before sequences, which can wait, but take at most half of the rows of logits;
 * the log says so where there are too few rows for both. Throws EngineError('out_of_memory') if not even one row fits.
 */
function batchLimits(platform: Platform, { model: { id, context }, config }: OpenedChat, bounds: Bounds): BatchLimits {
  const { maxBindingBytes, software, matrices, widestRow, vocabulary } = bounds;
  const logitRows = Math.floor(maxBindingBytes / 4 / vocabulary);
  const wanted = DRAFTING_SEQUENCES * (promptLookup(config)?.draftTokens ?? headDrafts(config));
  const maxRunning = Math.min(config.maxRunningRequests, logitRows - Math.min(wanted, Math.floor(logitRows / 2)));
  const draftRows = Math.min(wanted, logitRows - maxRunning);
  // Kernels have a row a workgroup in one direction of their grids.
  const rows = Math.min(Math.floor(maxBindingBytes / 4 / widestRow), MAX_WORKGROUPS);
  const prefillChunk = Math.min(prefillChunkSize(config.chunkedPrefillSize, software), context, rows - maxRunning);
  if (maxRunning < 1 || prefillChunk < 1) {
    throw new EngineError('out_of_memory', `a row of ${widestRow} or ${vocabulary} values does not fit this adapter's bindings of ${maxBindingBytes} bytes`); // prettier-ignore
  }
  if (wanted > 0 && config.maxRunningRequests + wanted > logitRows)
    platform.log(`${id}: this adapter's bindings hold ${logitRows} rows of logits: at most ${maxRunning} sequences run at once, and a step verifies up to ${draftRows} drafts`); // prettier-ignore
  return { maxRunning, prefillChunk, draftRows, headDrafts: headDrafts(config), promptsApart: config.numerics === 'fast' && matrices };
}

function grammarsOf(platform: Platform, tokenizer: Tokenizer, vocabulary: number, stopTokenIds: readonly number[]): Grammars {
  const startWorker = (): PlatformWorker => {
    if (!platform.startGrammarWorker) throw new EngineError('unsupported', 'this page has no grammar library');
    return platform.startGrammarWorker(new URL(/* @vite-ignore */ '../text/grammar-worker.ts', import.meta.url));
  };
  return new Grammars(startWorker, () => {
    const { tokens, type } = tokenizer.vocabulary;
    // Checkpoints pad their vocabulary; an id without a spelling can never be allowed.
    return { tokens: Array.from({ length: vocabulary }, (_, id) => tokens[id] ?? ''), type, stopTokenIds };
  });
}
