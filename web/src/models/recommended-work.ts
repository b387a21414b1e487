/**
 * Downloads of recommended models, single or a preset's three. A page can fetch models from the hub, but not parts in package registries.
 */
import { signal } from '@preact/signals';
import { PRESETS, downloadBytes, parseSource, presetModels } from '../../../sources/index.ts';
import type { RecommendedModel } from '../../../sources/index.ts';
import { toFailure } from '../failure.ts';
import type { Settings } from '../settings.ts';
import { findModel } from './find-model.ts';
import type { Finder } from './find-model.ts';
import { requireFit, roomHere } from './fit.ts';
import { manifestBytes } from './manifest.ts';
import type { ModelManifest } from './manifest.ts';
import type { ModelLibrary } from './model-library.ts';
import type { ModelWork, ModelWorks } from './model-work.ts';

/** The part of App that RecommendedWork uses. */
export interface RecommendedPlace {
  readonly works: ModelWorks;
  readonly library: ModelLibrary;
  readonly settings: Settings;
  readonly finder: Finder;
}

/** The source from which a page fetches a recommended model: each one has a source on the hub. */
export function pageSource({ sources }: RecommendedModel): string {
  return sources.find(({ from }) => parseSource(from).kind === 'hub')!.from;
}

/** Download size in bytes from that source, where known. */
export function pageBytes(model: RecommendedModel): number | undefined {
  const from = pageSource(model);
  return model.sources.find((source) => source.from === from)?.bytes ?? downloadBytes(model);
}

/** Bytes that are still missing; a paused download has some already. */
export function lacking(model: RecommendedModel, library: ModelLibrary): number {
  const stored = library.stored.value.find(({ manifest }) => manifest.id === model.id);
  return stored ? manifestBytes(stored.manifest) - stored.bytes : (pageBytes(model) ?? 0);
}

/** Approximate device memory of a model in a tab, in bytes: a tab's batches are as small as a server's on a software adapter. */
export const tabBytes = ({ memory }: RecommendedModel): number => memory.software;

export class RecommendedWork {
  /** Name of the preset that is being downloaded. */
  readonly preset = signal<string | undefined>(undefined);
  /** The work on the preset's current model. */
  readonly current = signal<ModelWork | undefined>(undefined);
  /** Result of the last download, for people. */
  readonly note = signal('');
  readonly #place: RecommendedPlace;

  constructor(place: RecommendedPlace) {
    this.#place = place;
  }

  /** Downloads a model, resuming where it broke off; the person has seen its size. True when all of it is stored. */
  async get(model: RecommendedModel): Promise<boolean> {
    const { works, library } = this.#place;
    if (library.isComplete(model.id)) return true;
    const work = works.of(model.id);
    return library.manifest(model.id) ? work.fetch() : work.findAndFetch((signal) => this.#find(model, signal));
  }

  /** Downloads the models of a preset, one after the other, if there is room for all, and selects them for their tasks. */
  async getPreset(name: string): Promise<void> {
    const models = presetModels(PRESETS[name]!);
    const { works, settings } = this.#place;
    this.preset.value = name;
    this.note.value = '';
    try {
      requireFit(this.#together(name, models), await roomHere());
      for (const model of models) {
        this.current.value = works.of(model.id);
        if (!(await this.get(model))) this.note.value = `${model.id}: ${works.of(model.id).note.peek()}`;
        if (this.note.peek() !== '' || this.preset.peek() !== name) return;
        settings.update('models', { [model.task]: model.id });
      }
      this.note.value = `The models of ${name} are those of chat, speech and transcription now`;
    } catch (error) {
      this.note.value = toFailure(error).message;
    } finally {
      this.preset.value = this.current.value = undefined;
    }
  }

  /** Stops the download of a preset; what has arrived is kept. */
  stop(): void {
    this.preset.value = undefined;
    this.current.peek()?.stop();
  }

  /** Combines several models into one, for requireFit: their missing files, and the memory they need when all are loaded. */
  #together(name: string, models: readonly RecommendedModel[]): Pick<ModelManifest, 'id' | 'files' | 'about'> {
    const { library } = this.#place;
    const missing = models.filter(({ id }) => !library.isComplete(id));
    const files = missing.map((model) => ({ name: model.id, size: lacking(model, library), sha256: [] }));
    return { id: `the preset ${name}`, files, about: { memoryBytes: models.reduce((sum, model) => sum + tabBytes(model), 0) } };
  }

  async #find(model: RecommendedModel, signal: AbortSignal): Promise<ModelManifest> {
    const found = await findModel(pageSource(model), this.#place.finder, signal);
    return { ...found, id: model.id, about: { memoryBytes: tabBytes(model), ...found.about } };
  }
}
