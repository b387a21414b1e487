/** The person's settings: typed, versioned, in localStorage (conversations are in IndexedDB). */
import { computed, signal } from '@preact/signals';
import type { ReadonlySignal, Signal } from '@preact/signals';
import { CONTROL_NAMES, SAMPLING, samplingField, samplingNumbers } from '../../engine/sampling.ts';
import type { ControlName } from '../../engine/sampling.ts';
import type { ModelTask } from './models/manifest.ts';

export type Where = 'tab' | 'server';
export type Theme = 'system' | 'light' | 'dark';

/** Stored settings, as plain data; each field has a default, so that fields can be added. */
export interface SettingsData {
  readonly theme: Theme;
  /** Where the person chose each task to run; `Settings.where` says where it does run. */
  readonly where: Readonly<Record<ModelTask, Where>>;
  /** Base URLs of the three listeners, ending in /v1; empty = guessed from the page's own address. */
  readonly servers: Readonly<Record<ModelTask, string>>;
  readonly apiKey: string;
  /** Ids of the models that the person chose of those that servers list, by `serverKey`. */
  readonly serverModels: Readonly<Record<string, string>>;
  /** Where models are looked up: the Hugging Face hub, or a mirror that speaks its protocol. */
  readonly hub: string;
  /** Model id per task in the tab. */
  readonly models: Readonly<Record<ModelTask, string>>;
  readonly chat: Readonly<Record<ControlName, number>> & {
    readonly system: string;
    /** Empty = random. */
    readonly seed: string;
    readonly maxTokens: number;
    readonly stop: string;
  };
  /**
   * The voice chosen last, and the voice of each model by its id; ModelChoices decides which one speaks. Languages likewise; empty =
   * detected.
   */
  readonly speech: {
    readonly voice: string;
    readonly voices: Readonly<Record<string, string>>;
    readonly speed: number;
    readonly seed: string;
  };
  readonly transcription: { readonly language: string; readonly languages: Readonly<Record<string, string>>; readonly prompt: string };
  readonly microphone: { readonly echoCancellation: boolean; readonly noiseSuppression: boolean; readonly autoGainControl: boolean };
  readonly readAnswers: boolean;
  /** Whether the rarely used sampling controls are shown. */
  readonly moreSampling: boolean;
  /** Whether the tab's chat model is split over both graphics cards of the machine. */
  readonly bothAdapters: boolean;
}

const SAMPLING_START = samplingNumbers(CONTROL_NAMES, (name) => samplingField(name).control?.initial ?? SAMPLING[name].default);

export const DEFAULT_SETTINGS: SettingsData = {
  theme: 'system',
  where: { chat: 'tab', speech: 'tab', transcription: 'tab' },
  servers: { chat: '', speech: '', transcription: '' },
  apiKey: '',
  serverModels: {},
  hub: 'https://huggingface.co',
  models: { chat: 'parley-chat', speech: 'parley-speech', transcription: 'parley-transcribe' },
  chat: { system: '', ...SAMPLING_START, seed: '', maxTokens: 512, stop: '' },
  speech: { voice: 'aus-male-3', voices: {}, speed: 1, seed: '' },
  transcription: { language: '', languages: {}, prompt: '' },
  microphone: { echoCancellation: true, noiseSuppression: true, autoGainControl: true },
  readAnswers: false,
  moreSampling: false,
  bothAdapters: false,
};

const KEY = 'parley.settings.1';

/** The key of `SettingsData.serverModels` for a task and its server's base URL. */
export const serverKey = (task: ModelTask, server: string): string => `${task} ${server.replace(/\/$/, '')}`;

/** The settings as one signal. Each change is saved on its own, so that changes of other tabs are kept. */
export class Settings {
  readonly data: Signal<SettingsData>;
  /** Where each task is computed in this visit. */
  readonly where: ReadonlySignal<Readonly<Record<ModelTask, Where>>> = computed(() => ({
    ...this.data.value.where,
    ...this.#instead.value,
  }));
  /** Overrides of the person's choice for this visit; never saved, so that the choice holds again when the tab can compute. */
  readonly #instead: Signal<Partial<Record<ModelTask, Where>>> = signal({});
  readonly #storage: Storage | undefined;

  constructor(storage: Storage | undefined) {
    this.#storage = storage;
    this.data = signal(stored(storage));
  }

  get value(): SettingsData {
    return this.data.value;
  }

  set<K extends keyof SettingsData>(key: K, value: SettingsData[K]): void {
    this.#change((data) => ({ ...data, [key]: value }));
  }

  /** Sets where the person wants a task to run. */
  choose(task: ModelTask, where: Where): void {
    const { [task]: _, ...others } = this.#instead.peek();
    this.#instead.value = others;
    this.#change((data) => ({ ...data, where: { ...data.where, [task]: where } }));
  }

  /** Lets servers run all tasks until the person chooses, because the tab cannot compute. */
  useServers(): void {
    this.#instead.value = { chat: 'server', speech: 'server', transcription: 'server' };
  }

  /** Changes some fields of a section; nested objects are merged, not replaced. */
  update<K extends 'servers' | 'serverModels' | 'models' | 'chat' | 'speech' | 'transcription' | 'microphone'>(
    key: K,
    patch: Partial<SettingsData[K]>,
  ): void {
    this.#change((data) => ({ ...data, [key]: patched(data[key], patch) }));
  }

  #change(edit: (data: SettingsData) => SettingsData): void {
    this.data.value = edit(this.data.peek());
    try {
      this.#storage?.setItem(KEY, JSON.stringify(edit(stored(this.#storage))));
    } catch {
      // If localStorage is full or forbidden, only the choice is lost at the next visit.
    }
  }
}

function stored(storage: Storage | undefined): SettingsData {
  return mergeDefaults(DEFAULT_SETTINGS, parse(storage?.getItem(KEY)));
}

function patched<T extends object>(section: T, patch: Partial<T>): T {
  const fields = Object.entries(patch).map(([key, value]) => {
    const before = section[key as keyof T];
    return [key, typeof value === 'object' && value !== null ? { ...before, ...value } : value];
  });
  return { ...section, ...Object.fromEntries(fields) };
}

function parse(text: string | null | undefined): unknown {
  try {
    return JSON.parse(text ?? 'null');
  } catch {
    return null;
  }
}

/**
 * Returns the defaults, overwritten by the values of `found` that have the default's type, recursively. An empty object as default stands
 * for a record of strings.
 */
export function mergeDefaults<T>(defaults: T, found: unknown): T {
  if (typeof defaults !== 'object' || defaults === null) return typeof found === typeof defaults ? (found as T) : defaults;
  if (typeof found !== 'object' || found === null) return defaults;
  if (Object.keys(defaults).length === 0)
    return Object.fromEntries(Object.entries(found).filter(([, text]) => typeof text === 'string')) as T;
  const merged = Object.entries(defaults).map(([key, value]) => [key, mergeDefaults(value, (found as Record<string, unknown>)[key])]);
  return Object.fromEntries(merged) as T;
}
