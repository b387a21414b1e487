/**
 * Models that are recommended, each with where it comes from, and the presets made of them: models/recommended.json, which everything that names
 * recommended models reads. Pure.
 */
import type { ModelTask } from '../engine/model-types.ts';
import { modelName } from '../engine/util/model-name.ts';
import table from '../models/recommended.json' with { type: 'json' };

export interface RecommendedSource {
  /** As a model flag takes it: a model of the hub, or the path of a recipe below the repository's root. */
  readonly from: string;
  /** Bytes of its files: exact where it was tried, else to three digits by the hub's listing or the number of parameters; absent where nobody has looked. */
  readonly bytes?: number;
  /** The day on which this very source was fetched and run (2026-11-23); absent = it never was. */
  readonly tried?: string;
}

/** A GPU computes more at once than a software adapter, and needs more beside the weights. */
export interface AdapterBytes {
  readonly gpu: number;
  readonly software: number;
}

export interface RecommendedModel {
  /** What names it in a model flag and in the API. */
  readonly id: string;
  readonly task: ModelTask;
  /** config.json's model_type. */
  readonly type: string;
  readonly parameters: number;
  /** In the order in which they are tried. */
  readonly sources: readonly RecommendedSource[];
  /**
   * Bytes of device memory, at most and without pages of keys and values: what the engine's plan says of its largest source with the standard settings
   * (test/sources/recommended-memory.test.ts).
   */
  readonly memory: AdapterBytes;
  /** Of a chat model: heads of keys and values, whose pages take what the others leave. */
  readonly kv?: { readonly layers: number; readonly kvHeads: number; readonly headDim: number };
  readonly licence: string;
  /** The hub gives it only to who has accepted its terms. */
  readonly terms?: boolean;
  /** Under the names of the HTTP API; taken where neither a request nor the model's own file says anything. */
  readonly sampling?: Readonly<Record<string, number>>;
  /** What it is good at and what not, in a few words each. */
  readonly good: string;
  readonly bad: string;
}

/** Models for a class of machines: a recommended one for each task. */
export interface Preset extends Readonly<Record<ModelTask, string>> {
  /** The machine. */
  readonly for: string;
  /** Taken where nobody says otherwise: a small GPU computes less at once. */
  readonly settings?: Readonly<Record<string, number>>;
  /** What its models take of a GPU with these settings; absent: what they take anyway. */
  readonly memory?: Readonly<Record<ModelTask, number>>;
}

/** In the file's order: by task, and within a task the smallest first. */
export const RECOMMENDED_MODELS = table.models as readonly RecommendedModel[];
/** By name, the smallest first. */
export const PRESETS: Readonly<Record<string, Preset>> = table.presets;

/** The recommended model of an id, as it is written in flags; undefined when there is none. */
export function recommendedModel(id: string): RecommendedModel | undefined {
  return RECOMMENDED_MODELS.find((model) => model.id.toLowerCase() === id.toLowerCase());
}

/** The recommended model that a source, a file or a folder seems to be by its name, wherever it comes from; undefined when there is none. */
export function recommendedByName(source: string): RecommendedModel | undefined {
  const { model } = /^(?<model>[^@]*?)(@[^:]*)?(:[^/\\]*)?$/.exec(source)?.groups ?? {};
  return recommendedModel(modelName(model || source).replace(/[-_.]gguf$/i, ''));
}

/** The three models of a preset, in the order of the listeners. */
export function presetModels({ chat, speech, transcription }: Preset): readonly RecommendedModel[] {
  return [chat, speech, transcription].map((id) => recommendedModel(id)!);
}

/** Bytes that a model takes of an adapter with a preset: one of its own, or another in the place of one, as much as it takes anyway. */
export function presetBytes(preset: Preset, { id, task, memory }: RecommendedModel, adapter: keyof AdapterBytes): number {
  return (adapter === 'gpu' && preset[task] === id ? preset.memory?.[task] : undefined) ?? memory[adapter];
}

/** Bytes of a model's files, of the largest of its sources that somebody has looked at; undefined where nobody has. */
export function downloadBytes({ sources }: RecommendedModel): number | undefined {
  const known = sources.flatMap(({ bytes }) => bytes ?? []);
  return known.length === 0 ? undefined : Math.max(...known);
}
