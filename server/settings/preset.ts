/** A preset's models against the memory of the adapters that would run them, before a byte of them is fetched. */
import { chatAdapters } from '../../engine/config.ts';
import { formatBytes } from '../../engine/util/memory.ts';
import { PRESETS, RECOMMENDED_MODELS, presetModels } from '../../sources/index.ts';
import type { RecommendedModel } from '../../sources/index.ts';
import { findModel } from '../../sources/node/index.ts';
import type { ResolveOptions } from '../../sources/node/index.ts';
import { readAdapterMemory } from '../setup/adapters.ts';
import type { AdapterMemoryLine } from '../setup/adapters.ts';
import type { ServerConfig } from './config.ts';

/** Why a preset is not fetched, in one line. */
export interface PresetProblem {
  readonly message: string;
  /** There is nothing to run it on at all. */
  readonly isWithoutAdapter: boolean;
}

/** What an adapter has, or why there is none. */
export type ReadMemory = (
  adapter: string | undefined,
  given: number | undefined,
) => Promise<AdapterMemoryLine | { readonly problem: string }>;

/**
 * Why the preset of the settings cannot be run here. Undefined where it can, where there is none, and where all of it is in the caches: then the engine
 * itself plans, with what it really loads.
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
  for (const [adapter, loads] of loadsByAdapter(config, preset.models)) {
    const memory = await read(adapter, engine.deviceMemory);
    if ('problem' in memory) return { message: memory.problem, isWithoutAdapter: true };
    const message = describeMisfit(preset.name, loads, memory, engine.memFractionStatic);
    if (message !== undefined) return { message, isWithoutAdapter: false };
  }
  return undefined;
}

/** A model, or the part of a split one, and its bytes on an adapter. */
interface Load {
  readonly model: RecommendedModel;
  readonly bytes: number;
}

function loadsByAdapter({ engine }: ServerConfig, models: readonly RecommendedModel[]): ReadonlyMap<string | undefined, readonly Load[]> {
  const loads = new Map<string | undefined, Load[]>();
  for (const model of models) {
    const adapters = model.task === 'chat' ? chatAdapters(engine) : [engine[`${model.task}Adapter`] ?? engine.adapter];
    for (const adapter of adapters)
      loads.set(adapter, [...(loads.get(adapter) ?? []), { model, bytes: Math.ceil(model.memory / adapters.length) }]);
  }
  return loads;
}

/** The one place that decides whether recommended models fit: what the table says they take, against the share that may be taken. */
export function describeMisfit(name: string, loads: readonly Load[], memory: AdapterMemoryLine, fraction: number): string | undefined {
  const most = memory.bytes * fraction;
  const needed = sum(loads.map(({ bytes }) => bytes));
  if (needed <= most) return undefined;
  const parts = loads.map(({ model, bytes }) => `${model.id} ${formatBytes(bytes)}`).join(', ');
  const share = `${fraction} x ${formatBytes(memory.bytes)} (${memory.from}) = ${formatBytes(most)} may be taken`;
  return `--preset ${name} does not fit ${memory.name}: it needs ${formatBytes(needed)} (${parts}), and ${share}. ${whatFits(name, loads, most)}`;
}

/** Ways out: smaller presets, the largest chat model beside the other two, and the operator's word. */
function whatFits(name: string, loads: readonly Load[], most: number): string {
  const presets = Object.entries(PRESETS).flatMap(([other, preset]) => {
    const bytes = sum(presetModels(preset).map(({ memory }) => memory));
    return other !== name && bytes <= most ? [`--preset ${other} (${formatBytes(bytes)})`] : [];
  });
  const others = sum(loads.filter(({ model }) => model.task !== 'chat').map(({ bytes }) => bytes));
  const isWhole = loads.some(({ model, bytes }) => model.task === 'chat' && bytes === model.memory);
  const chat = RECOMMENDED_MODELS.filter(({ task, memory }) => isWhole && task === 'chat' && others + memory <= most).at(-1);
  const smaller = chat ? [`--preset ${name} --chat-model ${chat.id} (${formatBytes(others + chat.memory)})`] : [];
  const fits = [...presets, ...smaller];
  const ways = fits.length === 0 ? 'No preset fits; the bundled models need far less' : `What fits: ${fits.join('; ')}`;
  return `${ways}. Where there really is more memory, --device-memory says so.`;
}

const sum = (numbers: readonly number[]): number => numbers.reduce((total, number) => total + number, 0);
