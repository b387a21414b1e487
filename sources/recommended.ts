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
   * Bytes of device memory without pages of keys and values: the buffers as they were counted on a software adapter where a source was tried, else an
   * estimate for a GPU, of the weights as they are kept there and what computing takes beside them.
   */
  readonly memory: number;
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
}

/** In the file's order: by task, and within a task the smallest first. */
export const RECOMMENDED_MODELS = table.models as readonly RecommendedModel[];
/** By name, the smallest first. */
export const PRESETS = table.presets as Readonly<Record<string, Preset>>;

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

/** Bytes of a model's files, of the largest of its sources that somebody has looked at; undefined where nobody has. */
export function downloadBytes({ sources }: RecommendedModel): number | undefined {
  const known = sources.flatMap(({ bytes }) => bytes ?? []);
  return known.length === 0 ? undefined : Math.max(...known);
}
