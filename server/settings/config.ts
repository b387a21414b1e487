/** Converts settings to the configuration that the rest of the server uses. */
import { existsSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { ENGINE_SETTINGS, splitOf } from '../../engine/config.ts';
import type { EngineConfig, ModelSource } from '../../engine/config.ts';
import { MODEL_TASKS } from '../../engine/model-types.ts';
import type { ModelTask } from '../../engine/model-types.ts';
import { modelName } from '../../engine/util/model-name.ts';
import { PRESETS, presetModels } from '../../sources/index.ts';
import type { RecommendedModel } from '../../sources/index.ts';
import { readKeys } from '../access/keys.ts';
import type { KeyRow } from '../access/limits.ts';
import { readTls } from '../access/tls.ts';
import type { TlsFiles, TlsOptions } from '../access/tls.ts';
import { readHost, readOrigin } from '../http/origin.ts';
import type { OriginRules } from '../http/origin.ts';
import { FLAGS, SHOWN_FLAGS } from './flags.ts';
import type { SettingKey, Settings } from './flags.ts';
import { readText } from './read-text.ts';
import { SettingsError, calledAs, givenSettings, readSettings } from './read.ts';
import type { Called, Value } from './read.ts';
import { defined } from '../body/validate.ts';
import type { VoiceTable } from '../../engine/util/voices.ts';
import { parseVoiceAliases } from '../speech/voice-aliases.ts';
import { languageCode } from '../transcription/languages.ts';
import { BUNDLED, PAGE, ROOT } from '../setup/layout.mjs';

/** A listener: its task, port and model. */
export interface ListenerSettings {
  readonly task: ModelTask;
  readonly port: number;
  readonly modelId: string;
  readonly aliases: readonly string[];
}

/** The server's configuration, checked and with all defaults. */
export interface ServerConfig {
  readonly help: boolean;
  /** The chosen preset, with those of its models that no flag replaces. */
  readonly preset: { readonly name: string; readonly models: readonly RecommendedModel[] } | undefined;
  readonly engine: EngineConfig;
  /** Whether the operator set a context length, instead of taking the default. */
  readonly contextAsked: boolean;
  readonly toggles: Settings['dawnToggles'];
  readonly host: string;
  /** Listeners, one for each task that has a model. */
  readonly listeners: readonly ListenerSettings[];
  readonly apiKey: string | undefined;
  readonly adminKey: string | undefined;
  /** The file of API keys, and its rows. */
  readonly keys: { readonly path: string; readonly rows: readonly KeyRow[] } | undefined;
  readonly tls: { readonly files: TlsFiles; readonly options: TlsOptions } | undefined;
  readonly origins: OriginRules;
  readonly modelOptional: boolean;
  readonly reasoningField: Settings['reasoningField'];
  readonly legacySpeech: boolean;
  readonly speechDefaultFormat: Settings['speechDefaultFormat'];
  readonly voiceAliases: VoiceTable;
  readonly maxInputChars: number;
  readonly maxUploadBytes: number;
  /** Milliseconds. */
  readonly drainDelayMs: number;
  readonly drainTimeoutMs: number;
  readonly watchdogMs: number;
  readonly logLevel: Settings['logLevel'];
  readonly logRequests: boolean;
  /** Built playground, served by the chat listener if it is there. */
  readonly staticFolder: string;
  /** What /get_server_info shows: every setting by its flag's name, without the keys. */
  readonly shown: Readonly<Record<string, Value>>;
  /** How errors name a setting. */
  readonly called: Called;
}

/** Reads argv, environment and --config; throws SettingsError with a one-line message. */
export function parseServerConfig(argv: readonly string[], env: Readonly<Record<string, string | undefined>>): ServerConfig {
  const given = givenSettings(argv, env, readText);
  const called = calledAs(given);
  const { settings, preset } = withPreset(readSettings(argv, env, readText), given);
  const sources = {
    chat: withLoras(modelSource(settings.chatModel, settings.servedModelName), settings, called),
    speech: modelSource(settings.speechModel),
    transcription: modelSource(settings.transcriptionModel),
  };
  const listeners = MODEL_TASKS.flatMap((task) => {
    const modelId = sources[task]?.id;
    const port = task === 'chat' ? settings.port : settings[`${task}Port`];
    return modelId === undefined ? [] : [{ task, port, modelId, aliases: settings[`${task}Alias`] }];
  });
  if (listeners.length === 0) throw new SettingsError('there is no model to serve: all three are none');
  checkPorts(listeners);
  checkLoraNames(listeners, sources.chat);
  const vad = modelSource(settings.vadModel);
  const { help, host, apiKey, adminKey, modelOptional, reasoningField, legacySpeech, speechDefaultFormat, maxInputChars } = settings;
  return {
    help,
    preset,
    engine: checkSplit({ ...engineSettings(settings, called), ...defined(sources), ...(vad && { vad: { path: vad.path } }) }, called),
    contextAsked: given.has('contextLength'),
    toggles: settings.dawnToggles,
    // As in a URL, which is where people copy it from.
    host: host.replace(/^\[(.*)\]$/, '$1'),
    listeners,
    apiKey,
    adminKey,
    keys: keysOf(settings.apiKeys, called),
    tls: tlsOf(settings, called),
    origins: originsOf(settings, called),
    modelOptional,
    reasoningField,
    legacySpeech,
    speechDefaultFormat,
    voiceAliases: voiceAliases(settings.voiceAlias, called),
    maxInputChars,
    maxUploadBytes: settings.maxUploadMib * 2 ** 20,
    drainDelayMs: settings.drainDelay * 1000,
    drainTimeoutMs: settings.drainTimeout * 1000,
    watchdogMs: settings.watchdogTimeout * 1000,
    logLevel: settings.logLevel,
    logRequests: settings.logRequests,
    staticFolder: PAGE,
    shown: shownSettings(settings),
    called,
  };
}

/** Adds a preset's models and settings where the operator gave none. */
function withPreset(
  settings: Settings,
  given: ReadonlyMap<SettingKey, unknown>,
): Pick<ServerConfig, 'preset'> & { readonly settings: Settings } {
  const preset = settings.preset === undefined ? undefined : PRESETS[settings.preset];
  if (!preset || settings.preset === undefined) return { settings, preset: undefined };
  const models = presetModels(preset).filter(({ task }) => !given.has(`${task}Model`));
  const named = Object.fromEntries(models.map(({ task, id }) => [`${task}Model`, id]));
  const own = Object.entries(preset.settings ?? {}).filter(([key]) => !given.has(key as SettingKey));
  return { settings: { ...settings, ...Object.fromEntries(own), ...named }, preset: { name: settings.preset, models } };
}

/** Whether a model's folder is one of the bundled models. */
export function isBundled(path: string): boolean {
  return BUNDLED !== undefined && dirname(path) === resolve(BUNDLED, 'models');
}

/** Reads the file of API keys, if one is named. */
function keysOf(path: string | undefined, called: Called): ServerConfig['keys'] {
  return path === undefined ? undefined : { path, rows: orRefuse(() => readKeys(path, readText, called)) };
}

function tlsOf({ tlsCert: cert, tlsKey: key, tlsClientCa: clientCa }: Settings, called: Called): ServerConfig['tls'] {
  if (cert === undefined && key === undefined && clientCa === undefined) return undefined;
  if (cert === undefined || key === undefined) throw new SettingsError(`TLS needs both ${called('tlsCert')} and ${called('tlsKey')}`);
  const files = { cert, key, ...defined({ clientCa }) };
  return { files, options: orRefuse(() => readTls(files, readText, called)) };
}

/** Normalises origins and hosts for comparison; refuses those that could match nothing. */
function originsOf({ corsOrigin, allowedHosts }: Settings, called: Called): OriginRules {
  const each = (key: 'corsOrigin' | 'allowedHosts', given: readonly string[], read: typeof readHost, what: string): readonly string[] =>
    given.map((one) => {
      const found = one === '*' ? one : read(one);
      if (found === undefined) throw new SettingsError(`${called(key, one)}: must be ${what}, or *`);
      return found;
    });
  return {
    corsOrigins: each('corsOrigin', corsOrigin, readOrigin, 'origins such as https://app.example:8443'),
    allowedHosts: each('allowedHosts', allowedHosts, readHost, 'host names such as app.example'),
  };
}

/** Runs `read`, and turns a failure into a SettingsError. */
function orRefuse<T>(read: () => T): T {
  try {
    return read();
  } catch (error) {
    throw new SettingsError(error instanceof Error ? error.message : String(error));
  }
}

/** Settings by their flags' names, as /server_info shows them. */
function shownSettings(settings: Settings): Readonly<Record<string, Value>> {
  return Object.fromEntries(
    SHOWN_FLAGS.flatMap(({ key, name }) => {
      const value = settings[key];
      return value === undefined ? [] : [[name, value]];
    }),
  );
}

function voiceAliases(items: readonly string[], called: Called): VoiceTable {
  const aliases = parseVoiceAliases(items);
  if (!aliases)
    throw new SettingsError(`${called('voiceAlias', items)}: must be name=voice,name=voice(0.5)+voice(0.5),... with each name once`);
  return aliases;
}

/** Settings of the engine, in its units. */
function engineSettings(settings: Settings, called: Called): EngineConfig {
  const { speculativeNgramMinMatchWindowSize: least, speculativeNgramMaxMatchWindowSize: most } = settings;
  if (settings.speculativeNgram && least > most)
    throw new SettingsError(
      `${called('speculativeNgramMinMatchWindowSize', least)} and ${called('speculativeNgramMaxMatchWindowSize', most)}: a match has at least ${least} and at most ${most} tokens`,
    );
  if (settings.speculativeNgram && settings.speculativeMtp)
    throw new SettingsError(`${called('speculativeNgram')} and ${called('speculativeMtp')}: guesses are made in one of the two ways`);
  const given = Object.entries(ENGINE_SETTINGS).flatMap(([key, row]) => {
    const value = settings[key as keyof typeof ENGINE_SETTINGS];
    if (value === undefined) return [];
    return [[key, 'scale' in row && typeof value === 'number' ? value * row.scale : value]];
  });
  return { ...(Object.fromEntries(given) as EngineConfig), transcriptionLanguage: languageOf(settings.transcriptionLanguage, called) };
}

/** Normalises a language, given as requests may give it, to its code. */
function languageOf(language: string, called: Called): string {
  const code = language === 'auto' ? language : languageCode(language);
  if (code !== undefined) return code;
  throw new SettingsError(`${called('transcriptionLanguage', language)}: must be auto or an ISO 639-1 code such as en`);
}

/** Checks that the settings of a split model fit together. */
function checkSplit(engine: EngineConfig, called: Called): EngineConfig {
  const { tpSize, ppSize } = splitOf(engine);
  const { ppSplit, adapters } = engine;
  if (ppSplit !== 'auto' && ppSplit.length !== ppSize) {
    throw new SettingsError(`${called('ppSplit', ppSplit)}: must be auto or ${ppSize} numbers of layers, as ${called('ppSize')} says`);
  }
  if (adapters.length > tpSize * ppSize) {
    throw new SettingsError(
      `${called('adapters')} names ${adapters.length} for the ${tpSize * ppSize} parts of ${called('tpSize')} and ${called('ppSize')}`,
    );
  }
  if (adapters.length === 1 && tpSize * ppSize === 1)
    throw new SettingsError(`${called('adapters')} names one and nothing to split; use --chat-adapter`);
  return engine;
}

/**
 * Finds a model's path: a folder or file relative to the working directory, or else one that comes with Parley. Any other text stays as it was written, so that
 * the engine can report what it looks like.
 */
function modelSource(path: string | undefined, id?: string): (ModelSource & { readonly id: string }) | undefined {
  if (path === undefined || path === 'none') return undefined;
  const places = [resolve(path), resolve(ROOT, path), ...(BUNDLED === undefined ? [] : [resolve(BUNDLED, path)])];
  const folder = places.find((place) => existsSync(place)) ?? path;
  if (folder === path && BUNDLED === undefined && BUNDLED_PATHS.includes(path)) throw new SettingsError(NOT_INSTALLED);
  return { path: folder, id: id ?? modelName(folder) };
}

/** The chat model with its LoRA adapters, of which some may have to be fetched yet (sources.ts). */
function withLoras<Source extends ModelSource>(chat: Source | undefined, { lora }: Settings, called: Called): Source | undefined {
  if (lora.length === 0) return chat;
  if (!chat) throw new SettingsError(`${called('lora', lora)}: there is no chat model that adapters could go with`);
  const loras = lora.map((item) => {
    const [, id, path] = /^([^=]+)=(.+)$/.exec(item) ?? [];
    if (id === undefined || path === undefined) throw new SettingsError(`${called('lora', item)}: must be NAME=MODEL,...`);
    return { id, path: existsSync(path) ? resolve(path) : path };
  });
  return { ...chat, loras };
}

/** Checks that the ids of LoRA adapters are those of nothing else; throws SettingsError. */
export function checkLoraNames(listeners: readonly ListenerSettings[], chat: ModelSource | undefined): void {
  const ids = chat?.loras?.map(({ id }) => id) ?? [];
  const twice = ids.find((id, index) => ids.indexOf(id) !== index);
  if (twice !== undefined) throw new SettingsError(`two LoRA adapters have the name ${twice}; each needs its own`);
  const served = listeners.filter(({ task }) => task === 'chat').flatMap(({ modelId, aliases }) => [modelId, ...aliases]);
  const taken = ids.find((id) => served.includes(id));
  if (taken !== undefined)
    throw new SettingsError(`a LoRA adapter has the name ${taken}, which is an id of the chat model; give it another`);
}

/** Default model paths of the flags. */
const BUNDLED_PATHS = FLAGS.flatMap((flag) =>
  'default' in flag && String(flag.default).startsWith('models/') ? [String(flag.default)] : [],
);
const NOT_INSTALLED =
  'the bundled models are not installed: install the package parley-models beside this one, or name models with --preset or --chat-model, --speech-model and --transcription-model (none leaves a task out)';

/** Checks that the listeners have different ports; 0 means any free one. */
function checkPorts(listeners: readonly ListenerSettings[]): void {
  const ports = listeners.map(({ port }) => port).filter((port) => port !== 0);
  const twice = ports.find((port, index) => ports.indexOf(port) !== index);
  if (twice !== undefined) throw new SettingsError(`port ${twice} is given to two listeners; each needs its own`);
}
