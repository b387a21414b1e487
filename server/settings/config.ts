/** Settings as the rest of the server uses them. The only file that knows the names of flags. */
import { existsSync, readFileSync } from 'node:fs';
import { basename, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { EngineConfig, ModelSource, PromptLookup } from '../../engine/config.ts';
import type { Task } from '../http/metrics.ts';
import type { OriginRules } from '../http/origin.ts';
import type { ReasoningField } from '../chat/choice.ts';
import { SettingsError, givenSettings, readSettings } from './read.ts';
import type { Value } from './read.ts';
import type { SpeechFormat } from '../speech/schema.ts';
import { defined } from '../body/validate.ts';
import type { VoiceTable } from '../../engine/util/voices.ts';
import { parseVoiceAliases } from '../speech/voice-aliases.ts';

/** The repository; bundled models and the built playground lie below it, wherever the server is started. */
const ROOT = fileURLToPath(new URL('../..', import.meta.url));

export interface ListenerSettings {
  readonly task: Task;
  readonly port: number;
  readonly modelId: string;
  readonly aliases: readonly string[];
}

export interface ServerConfig {
  readonly help: boolean;
  readonly engine: EngineConfig;
  /** Whether the operator named a context length, instead of taking the default. */
  readonly contextAsked: boolean;
  readonly toggles: 'default' | 'fast';
  readonly host: string;
  /** One for each task that has a model. */
  readonly listeners: readonly ListenerSettings[];
  readonly apiKey: string | undefined;
  readonly adminKey: string | undefined;
  readonly origins: OriginRules;
  readonly modelOptional: boolean;
  readonly reasoningField: ReasoningField;
  readonly legacySpeech: boolean;
  readonly speechDefaultFormat: SpeechFormat;
  readonly voiceAliases: VoiceTable;
  readonly maxInputChars: number;
  readonly maxUploadBytes: number;
  /** Milliseconds. */
  readonly drainDelayMs: number;
  readonly drainTimeoutMs: number;
  readonly watchdogMs: number;
  readonly logLevel: string;
  /** Built playground, served by the chat listener if it is there. */
  readonly staticFolder: string;
  /** What /get_server_info shows: every setting by its flag's name, without the keys. */
  readonly shown: Readonly<Record<string, Value>>;
}

/** Reads argv, environment and --config; throws SettingsError with a one-line message. */
export function parseServerConfig(argv: readonly string[], env: Readonly<Record<string, string | undefined>>): ServerConfig {
  const read = (path: string): string => readFileSync(path, 'utf8');
  const settings = readSettings(argv, env, read);
  const { text, number, flag, list } = readers(settings);
  const sources = {
    chat: modelSource(text('chat-model'), text('served-model-name')),
    speech: modelSource(text('speech-model')),
    transcription: modelSource(text('transcription-model')),
  };
  const ports = { chat: number('port'), speech: number('speech-port'), transcription: number('transcription-port') };
  const listeners = (['chat', 'speech', 'transcription'] as const).flatMap((task) => {
    const modelId = sources[task]?.id;
    return modelId === undefined ? [] : [{ task, port: ports[task], modelId, aliases: list(`${task}-alias`) }];
  });
  if (listeners.length === 0) throw new SettingsError('there is no model to serve: all three are none');
  checkPorts(listeners);
  return {
    help: flag('help'),
    engine: engineSettings(settings, sources),
    contextAsked: givenSettings(argv, env, read).has('context-length'),
    toggles: text('dawn-toggles') as 'default' | 'fast',
    host: text('host') ?? '0.0.0.0',
    listeners,
    apiKey: text('api-key'),
    adminKey: text('admin-key'),
    origins: { corsOrigins: list('cors-origin'), allowedHosts: list('allowed-hosts') },
    modelOptional: flag('model-optional'),
    reasoningField: text('reasoning-field') as ReasoningField,
    legacySpeech: flag('legacy-speech'),
    speechDefaultFormat: text('speech-default-format') as SpeechFormat,
    voiceAliases: voiceAliases(list('voice-alias')),
    maxInputChars: number('max-input-chars'),
    maxUploadBytes: number('max-upload-mib') * 2 ** 20,
    drainDelayMs: number('drain-delay') * 1000,
    drainTimeoutMs: number('drain-timeout') * 1000,
    watchdogMs: number('watchdog-timeout') * 1000,
    logLevel: text('log-level') ?? 'warn',
    staticFolder: resolve(ROOT, 'dist', 'web'),
    shown: Object.fromEntries([...settings].filter(([name]) => !['api-key', 'admin-key', 'config', 'help'].includes(name))),
  };
}

function voiceAliases(items: readonly string[]): VoiceTable {
  const aliases = parseVoiceAliases(items);
  if (!aliases)
    throw new SettingsError(`--voice-alias ${items.join(',')}: must be name=voice,name=voice(0.5)+voice(0.5),... with each name once`);
  return aliases;
}

type Settings = ReturnType<typeof readSettings>;
type Sources = Readonly<Record<Task, ModelSource | undefined>>;

/** Values by the type that their flags have. */
function readers(settings: Settings) {
  return {
    text: (name: string) => settings.get(name) as string | undefined,
    number: (name: string) => settings.get(name) as number,
    flag: (name: string) => settings.get(name) as boolean,
    list: (name: string) => settings.get(name) as readonly string[],
  };
}

/** What the engine is told; what is not set takes the engine's default. */
function engineSettings(settings: Settings, sources: Sources): EngineConfig {
  const { text, number, flag, list } = readers(settings);
  const memory = settings.get('device-memory') as number | undefined;
  return defined({
    ...sources,
    adapter: text('adapter'),
    taskAdapters: defined({ chat: text('chat-adapter'), speech: text('speech-adapter'), transcription: text('transcription-adapter') }),
    ...splitSettings(text, list('adapters')),
    maxRunningRequests: number('max-running-requests'),
    contextLength: number('context-length'),
    autoTruncateMaxTokens: flag('auto-truncate-max-tokens'),
    chunkedPrefillSize: settings.get('chunked-prefill-size') ?? 'auto',
    memFractionStatic: number('mem-fraction-static'),
    deviceMemory: memory === undefined ? undefined : memory * 2 ** 30,
    maxQueuedRequests: number('max-queued-requests'),
    schedulePolicy: text('schedule-policy'),
    radixCache: !flag('disable-radix-cache'),
    overlapSchedule: !flag('disable-overlap-schedule'),
    priorityScheduling: flag('enable-priority-scheduling'),
    preemptionThreshold: number('priority-scheduling-preemption-threshold'),
    promptLookup: flag('speculative-ngram') ? promptLookup(number) : undefined,
    pageSize: number('page-size'),
    dtype: text('dtype'),
    kvCacheDtype: text('kv-cache-dtype'),
    maxSpeechPhonemes: number('max-speech-phonemes'),
    trustRemoteCode: flag('trust-remote-code'),
  }) as EngineConfig;
}

function promptLookup(number: (name: string) => number): PromptLookup {
  const [minMatch, maxMatch] = [number('speculative-ngram-min-match-window-size'), number('speculative-ngram-max-match-window-size')];
  if (minMatch > maxMatch) throw new SettingsError(`speculative-ngram: a match of at least ${minMatch} and at most ${maxMatch} tokens`);
  return { draftTokens: number('speculative-num-draft-tokens'), minMatch, maxMatch };
}

/** How the chat model is split; naming several adapters asks for it. */
function splitSettings(
  text: (name: string) => string | undefined,
  adapters: readonly string[],
): Pick<EngineConfig, 'tpSize' | 'ppSize' | 'ppSplit' | 'adapters'> {
  const count = (name: string, automatic: number): number => {
    const given = text(name) ?? 'auto';
    if (given === 'auto') return automatic;
    if (!/^[1-9]\d?$/.test(given)) throw new SettingsError(`--${name} ${given}: must be auto or from 1 to 99`);
    return Number(given);
  };
  const ppSize = count('pp-size', 1);
  const tpSize = count('tp-size', adapters.length > 1 && ppSize === 1 ? 2 : 1);
  const split = text('pp-split') ?? 'auto';
  const ppSplit = split === 'auto' ? split : split.split(',').map(Number);
  if (ppSplit !== 'auto' && (ppSplit.length !== ppSize || !ppSplit.every((layers) => Number.isInteger(layers) && layers > 0))) {
    throw new SettingsError(`--pp-split ${split}: must be auto or ${ppSize} numbers of layers, as --pp-size says`);
  }
  if (adapters.length > tpSize * ppSize) {
    throw new SettingsError(`--adapters names ${adapters.length} for the ${tpSize * ppSize} parts of --tp-size and --pp-size`);
  }
  if (adapters.length === 1 && tpSize * ppSize === 1)
    throw new SettingsError(`--adapters names one and nothing to split; use --chat-adapter`);
  return { tpSize, ppSize, ppSplit, adapters };
}

/** A folder below the working directory, else below the repository; what is neither stays as it was written, for the engine to say what it looks like. */
function modelSource(path: string | undefined, id?: string): (ModelSource & { readonly id: string }) | undefined {
  if (path === undefined || path === 'none') return undefined;
  const folder = [resolve(path), resolve(ROOT, path)].find((place) => existsSync(place)) ?? path;
  return { path: folder, id: id ?? basename(folder) };
}

/** Three listeners need three ports; 0 takes any free one. */
function checkPorts(listeners: readonly ListenerSettings[]): void {
  const ports = listeners.map(({ port }) => port).filter((port) => port !== 0);
  const twice = ports.find((port, index) => ports.indexOf(port) !== index);
  if (twice !== undefined) throw new SettingsError(`port ${twice} is given to two listeners; each needs its own`);
}
