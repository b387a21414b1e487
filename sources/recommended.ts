/** Recommended models with their sources, and the presets made of them, from models/recommended.json, which everything that names recommended models reads. Pure. */
import type { ModelTask } from '../engine/model-types.ts';
import { modelName } from '../engine/util/model-name.ts';
import table from '../models/recommended.json' with { type: 'json' };

export interface RecommendedSource {
  /** The source as model flags take it: a model of the hub, or the path of a recipe below the repository's root. */
  readonly from: string;
  /** Bytes of its files: exact if it was tried, else to three digits by the hub's listing or the number of parameters; absent if unknown. */
  readonly bytes?: number;
  /** The day on which this very source was fetched and run (2026-11-23); absent = it never was. */
  readonly tried?: string;
}

/** Bytes by kind of adapter. A GPU computes more at once than a software adapter, and needs more memory besides the weights. */
export interface AdapterBytes {
  readonly gpu: number;
  readonly software: number;
}

export interface RecommendedModel {
  /** Name of the model in flags and in the API. */
  readonly id: string;
  readonly task: ModelTask;
  /** config.json's model_type. */
  readonly type: string;
  readonly parameters: number;
  /** Sources in the order in which they are tried. */
  readonly sources: readonly RecommendedSource[];
  /**
   * Upper bound of its device memory in bytes, without pages of the KV cache: the engine's plan for its largest source with default settings
   * (test/sources/recommended-memory.test.ts).
   */
  readonly memory: AdapterBytes;
  /** Shape of a chat model's KV cache, whose pages take the memory that the models leave. */
  readonly kv?: { readonly layers: number; readonly kvHeads: number; readonly headDim: number };
  readonly licence: string;
  /** Whether the hub gives it only to users who have accepted its terms. */
  readonly terms?: boolean;
  /** Sampling parameters under the names of the HTTP API, used if neither a request nor the model's own files set them. */
  readonly sampling?: Readonly<Record<string, number>>;
  /** What it is good at, and what it is not, in a few words each. */
  readonly good: string;
  readonly bad: string;
}

/** Models for a class of machines: one recommended model for each task. */
export interface Preset extends Readonly<Record<ModelTask, string>> {
  /** Description of the machine. */
  readonly for: string;
  /** Settings used unless the operator gives others: a small GPU computes less at once. */
  readonly settings?: Readonly<Record<string, number>>;
  /** Bytes that its models need on a GPU with these settings; absent: as much as without a preset. */
  readonly memory?: Readonly<Record<ModelTask, number>>;
}

/** The recommended models in the file's order: by task, and within a task the smallest first. */
export const RECOMMENDED_MODELS = table.models as readonly RecommendedModel[];
/** The presets by name, the smallest first. */
export const PRESETS: Readonly<Record<string, Preset>> = table.presets;

/** The recommended model with this id in a flag's spelling, in upper or lower case; undefined if there is none. */
export function recommendedModel(id: string): RecommendedModel | undefined {
  return RECOMMENDED_MODELS.find((model) => model.id.toLowerCase() === id.toLowerCase());
}

/** The recommended model that a source, a file or a folder seems to be by its name, wherever it is from; undefined if there is none. */
export function recommendedByName(source: string): RecommendedModel | undefined {
  const { model } = /^(?<model>[^@]*?)(@[^:]*)?(:[^/\\]*)?$/.exec(source)?.groups ?? {};
  return recommendedModel(modelName(model || source).replace(/[-_.]gguf$/i, ''));
}

/** The three models of a preset, in the order of the listeners. */
export function presetModels({ chat, speech, transcription }: Preset): readonly RecommendedModel[] {
  return [chat, speech, transcription].map((id) => recommendedModel(id)!);
}

/** Bytes that a model needs on an adapter with a preset. One that is not the preset's own needs as much as without it. */
export function presetBytes(preset: Preset, { id, task, memory }: RecommendedModel, adapter: keyof AdapterBytes): number {
  return (adapter === 'gpu' && preset[task] === id ? preset.memory?.[task] : undefined) ?? memory[adapter];
}

/** Bytes of a model's files, for the largest of its sources whose size is known; undefined if none is. */
export function downloadBytes({ sources }: RecommendedModel): number | undefined {
  const known = sources.flatMap(({ bytes }) => bytes ?? []);
  return known.length === 0 ? undefined : Math.max(...known);
}
