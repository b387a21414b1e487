/** Checks that a preset's models fit the memory of the adapters that would run them, before any of them is downloaded. */
import { chatAdapters, splitOf, weightStorage } from '../../engine/config.ts';
import type { EngineConfig } from '../../engine/config.ts';
import { EngineError } from '../../engine/errors.ts';
import type { MemoryShare, ModelDemand, planModels, tokensThatFit } from '../../engine/index.ts';
import { formatBytes } from '../../engine/util/memory.ts';
import { PRESETS, RECOMMENDED_MODELS, presetBytes, presetModels } from '../../sources/index.ts';
import type { RecommendedModel } from '../../sources/index.ts';
import { findModel } from '../../sources/node/index.ts';
import type { ResolveOptions } from '../../sources/node/index.ts';
import { readAdapterMemory } from '../setup/adapters.ts';
import type { AdapterMemoryLine } from '../setup/adapters.ts';
import type { ServerConfig } from './config.ts';

/** Why a preset is not fetched; the message is one line. */
export interface PresetProblem {
  readonly message: string;
  /** Whether there is no adapter at all. */
  readonly isWithoutAdapter: boolean;
}

/** Reads the memory of an adapter, or why there is none. */
export type ReadMemory = (
  adapter: string | undefined,
  given: number | undefined,
) => Promise<AdapterMemoryLine | { readonly problem: string }>;

/**
 * Returns why the chosen preset cannot run here. Undefined if it can, if there is none, or if all of its models are cached: the engine then plans itself, with
 * what it really loads.
 */
export async function presetProblem(
  config: ServerConfig,
  options: ResolveOptions,
  read: ReadMemory = readAdapterMemory,
): Promise<PresetProblem | undefined> {
  const { preset, engine } = config;
  if (!preset || preset.models.length === 0) return undefined;
  const cached = await Promise.all(preset.models.map(({ id }) => findModel(id, options)));
  if (cached.every(Boolean)) return undefined;
  // Loads the whole engine, which is no matter for a start that has minutes of downloads before it.
  const plan = await import('../../engine/index.ts');
  for (const [adapter, loads] of loadsByAdapter(config, preset.models)) {
    const memory = await read(adapter, engine.deviceMemory);
    if ('problem' in memory) return { message: `${memory.problem}; 'npx parley adapters' lists what there is.`, isWithoutAdapter: true };
    const message = describeMisfit({ preset: preset.name, loads, memory, engine, plan });
    if (message !== undefined) return { message, isWithoutAdapter: false };
  }
  return undefined;
}

/** A model, or its part, that an adapter would hold. */
interface Load {
  readonly model: RecommendedModel;
  /** Number of adapters that share the model. */
  readonly parts: number;
}

function loadsByAdapter({ engine }: ServerConfig, models: readonly RecommendedModel[]): ReadonlyMap<string | undefined, readonly Load[]> {
  const loads = new Map<string | undefined, Load[]>();
  for (const model of models) {
    const adapters = model.task === 'chat' ? chatAdapters(engine) : [engine[`${model.task}Adapter`] ?? engine.adapter];
    for (const adapter of adapters) loads.set(adapter, [...(loads.get(adapter) ?? []), { model, parts: adapters.length }]);
  }
  return loads;
}

interface Question {
  readonly preset: string;
  readonly loads: readonly Load[];
  readonly memory: AdapterMemoryLine;
  readonly engine: EngineConfig;
  /** The engine's memory planning, the only place that decides what fits. */
  readonly plan: { readonly planModels: typeof planModels; readonly tokensThatFit: typeof tokensThatFit };
}

/** Describes why models do not fit an adapter, by the table of recommended models, with the ways out; undefined if they fit. */
function describeMisfit(question: Question): string | undefined {
  const { preset, loads, memory, engine, plan } = question;
  const demands = loads.map((load) => demandOf(load, preset, question));
  try {
    plan.planModels(shareOf(question), demands);
    return undefined;
  } catch (error) {
    if (!(error instanceof EngineError) || error.code !== 'out_of_memory') throw error;
    const parts = demands.map(({ id, weights }) => `${id} ${formatBytes(weights)}`).join(', ');
    const most = memory.bytes * engine.memFractionStatic;
    const share = `${engine.memFractionStatic} x ${formatBytes(memory.bytes)} (${memory.from}) = ${formatBytes(most)} may be taken`;
    // If the models themselves almost fit, it is the room for a conversation that is lacking.
    const needed = `${formatBytes(sum(demands.map(({ weights }) => weights)))} (${parts})`;
    return `--preset ${preset} does not fit ${memory.name}: it needs ${needed} and room for a conversation, and ${share}. ${whatFits(question)}`;
  }
}

const shareOf = ({ memory: { bytes, from }, engine }: Question): MemoryShare => ({
  memory: { bytes, from },
  fraction: engine.memFractionStatic,
  maxBindingBytes: Infinity,
  taken: 0,
});

/** A model's demand in the memory plan. In the table the memory of weights and of computing is one number. */
function demandOf({ model, parts }: Load, preset: string, { memory, engine }: Question): ModelDemand {
  const { id, task, kv } = model;
  const bytes = presetBytes(PRESETS[preset]!, model, memory.software ? 'software' : 'gpu');
  const { tpSize, ppSize } = splitOf(engine);
  const dtype = engine.kvCacheDtype === 'auto' ? weightStorage(engine).float : engine.kvCacheDtype;
  return {
    id,
    task,
    weights: Math.ceil(bytes / parts),
    activations: 0,
    ...(kv && {
      pages: {
        kv: {
          layers: Array.from({ length: Math.ceil(kv.layers / ppSize) }, () => ({
            kvHeads: Math.ceil(kv.kvHeads / tpSize),
            headDim: kv.headDim,
          })),
          pageSize: engine.pageSize,
          dtype,
        },
        maxRunning: engine.maxRunningRequests,
        context: engine.contextLength,
      },
    }),
  };
}

/** Ways out: smaller presets, and the largest chat model that fits beside the other two, each with the number of tokens that it leaves room for. */
function whatFits(question: Question): string {
  const { preset: name, loads } = question;
  const fitting = (models: readonly RecommendedModel[], preset: string): string | undefined => {
    const demands = models.map((model) => demandOf({ model, parts: 1 }, preset, question));
    const others = sum(demands.filter(({ pages }) => !pages).map(({ weights }) => weights));
    const chat = demands.find(({ pages }) => pages);
    if (!chat) return undefined;
    const tokens = question.plan.tokensThatFit({ ...shareOf(question), taken: others }, { ...chat, pages: chat.pages! });
    if (tokens === 0) return undefined;
    return `${formatBytes(others + chat.weights)}, which leaves room for ${tokens.toLocaleString('en')} tokens`;
  };
  const presets = Object.entries(PRESETS).flatMap(([other, preset]) => {
    const room = other === name ? undefined : fitting(presetModels(preset), other);
    return room === undefined ? [] : [`--preset ${other} (${room})`];
  });
  const isWhole = loads.some(({ model, parts }) => model.task === 'chat' && parts === 1);
  const others = loads.map(({ model }) => model).filter(({ task }) => task !== 'chat');
  const smaller = RECOMMENDED_MODELS.filter(({ task }) => isWhole && task === 'chat').flatMap((chat) => {
    const room = fitting([...others, chat], name);
    return room === undefined ? [] : [`--preset ${name} --chat-model ${chat.id} (${room})`];
  });
  const fits = [...presets, ...smaller.slice(-1)];
  const ways = fits.length === 0 ? 'No preset fits; the bundled models need far less' : `What fits: ${fits.join('; ')}`;
  return `${ways}. Where there really is more memory, --device-memory says so.`;
}

const sum = (numbers: readonly number[]): number => numbers.reduce((total, number) => total + number, 0);
