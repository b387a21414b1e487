/** The model of each task with its chosen voice and language, in the tab or on a server. */
import type { RemoteEngine } from '../backend/remote-engine.ts';
import type { SessionState } from '../backend/session-state.ts';
import type { Settings } from '../settings.ts';
import { voiceFor } from '../speak/voices.ts';
import { loadedAbout } from './manifest.ts';
import type { ModelAbout, ModelTask } from './manifest.ts';
import type { ModelLibrary } from './model-library.ts';

/** The part of App that ModelChoices uses. */
export interface ChoicePlace {
  readonly settings: Settings;
  readonly library: ModelLibrary;
  readonly sessions: Readonly<Record<ModelTask, { readonly state: { readonly value: SessionState } }>>;
  readonly remote: RemoteEngine;
}

/** Reads signals, so views that use it render again when a choice changes. */
export class ModelChoices {
  readonly #place: ChoicePlace;

  constructor(place: ChoicePlace) {
    this.#place = place;
  }

  /** Returns the name of a task's model; undefined for a server that has not been asked yet. */
  name(task: ModelTask): string | undefined {
    const { settings, remote } = this.#place;
    return this.#isServer(task) ? remote.names.value[task] : settings.data.value.models[task];
  }

  /**
   * Returns what is known about a task's model: from the engine once it is loaded, before that from its files; undefined where nothing is
   * known.
   */
  about(task: ModelTask): ModelAbout | undefined {
    const { library, remote, sessions } = this.#place;
    if (this.#isServer(task)) return remote.abouts.value[task];
    const state = sessions[task].state.value;
    const name = this.name(task)!;
    // Another model may still be loaded.
    const loaded = state.name === 'ready' ? state.info.models.find((model) => model.task === task && model.id === name) : undefined;
    return loaded ? loadedAbout(loaded) : library.manifest(name)?.about;
  }

  /** The voice of the speech model. */
  get voice(): string {
    const { voice, voices } = this.#place.settings.data.value.speech;
    const own = voices[this.#key('speech')];
    return voiceFor(this.about('speech')?.voices, own === undefined ? [voice] : [own, voice]);
  }

  /** Chooses a voice for the speech model, and for other models that have it. */
  setVoice(voice: string): void {
    this.#place.settings.update('speech', { voice, voices: { [this.#key('speech')]: voice } });
  }

  /** The language for the transcription model; empty = detected by the model, or its only one. */
  get language(): string {
    const { language, languages } = this.#place.settings.data.value.transcription;
    const known = this.about('transcription')?.languages;
    const chosen = languages[this.#key('transcription')] ?? language;
    return !known || known.includes(chosen) ? chosen : '';
  }

  /** Chooses a language for the transcription model, and for other models that know it. */
  setLanguage(language: string): void {
    this.#place.settings.update('transcription', { language, languages: { [this.#key('transcription')]: language } });
  }

  #isServer(task: ModelTask): boolean {
    return this.#place.settings.where.value[task] === 'server';
  }

  #key(task: ModelTask): string {
    return this.name(task) ?? 'server';
  }
}
