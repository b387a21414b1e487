/** The table of the server's settings, and all settings as flags: command line, environment, --config file, --help and docs/flags.md are made from them. */
import { ENGINE_SETTINGS } from '../../engine/config.ts';
import { defaultsOf, defineSettings } from '../../engine/util/setting.ts';
import type { Setting, SettingsOf } from '../../engine/util/setting.ts';
import { PRESETS } from '../../sources/index.ts';
import { REASONING_FIELDS } from '../chat/choice.ts';
import { SPEECH_ALIASES, FORMATS as SPEECH_FORMATS } from '../speech/schema.ts';
import { dashed } from '../remedies.ts';
import { VOICE_ALIAS_LIST } from '../speech/voice-aliases.ts';
import { TRANSCRIPTION_ALIASES } from '../transcription/schema.ts';

/** Longest time of a timer in seconds, 23 days; a timer with a longer one would fire at once. */
const LONGEST_WAIT = 2_000_000;

/** The server's settings besides the engine's (`ENGINE_SETTINGS`); a flag's name is the key with dashes. Settings that SGLang has too have SGLang's names. */
const SERVER_SETTINGS = defineSettings({
  preset: {
    type: 'string',
    choices: Object.keys(PRESETS),
    group: 'Models',
    help: `recommended models for all three, fetched at the first start: ${Object.entries(PRESETS)
      .map(([name, preset]) => `${name} = ${preset.for}`)
      .join(', ')} (docs/models.md); models that are named go before it`,
  },
  chatModel: {
    type: 'string',
    default: 'models/parley-chat',
    group: 'Models',
    value: 'MODEL',
    help: 'chat model: a folder, a file, the id of a recommended model, owner/name of the hub or another source (docs/models.md), or none',
  },
  speechModel: { type: 'string', default: 'models/parley-speech', group: 'Models', value: 'MODEL', help: 'speech model, or none' },
  transcriptionModel: {
    type: 'string',
    default: 'models/parley-transcribe',
    group: 'Models',
    value: 'MODEL',
    help: 'transcription model, or none',
  },
  vadModel: {
    type: 'string',
    default: 'models/silero-vad',
    group: 'Models',
    value: 'FOLDER',
    help: "Silero VAD's weights, which keep audio without speech from the transcription model, or none",
  },
  servedModelName: {
    type: 'string',
    group: 'Models',
    value: 'ID',
    help: "id of the chat model; default: its folder's name, or its name on the hub",
  },
  chatAlias: { type: 'list', default: [], group: 'Models', value: 'IDS', help: 'other ids the chat model answers to' },
  lora: {
    type: 'list',
    repeats: true,
    default: [],
    group: 'Models',
    value: 'NAME=MODEL,...',
    help: 'LoRA adapters of the chat model, as PEFT saves them or as GGUF files, from folders or the hub, each under the id that requests name it by (docs/lora.md); may be given several times',
  },
  speechAlias: {
    type: 'list',
    default: SPEECH_ALIASES,
    group: 'Models',
    value: 'IDS',
    help: 'other ids the speech model answers to',
  },
  transcriptionAlias: {
    type: 'list',
    default: TRANSCRIPTION_ALIASES,
    group: 'Models',
    value: 'IDS',
    help: 'other ids the transcription model answers to',
  },
  host: {
    type: 'string',
    default: '0.0.0.0',
    group: 'Listeners',
    value: 'ADDRESS',
    help: 'interface of the three listeners; 0.0.0.0 = all of them, by IPv4 and IPv6',
  },
  port: { type: 'int', default: 3000, min: 0, max: 65535, group: 'Listeners', value: 'N', help: 'chat listener; 0 = any free port' },
  speechPort: { type: 'int', default: 3001, min: 0, max: 65535, group: 'Listeners', value: 'N', help: 'speech listener' },
  transcriptionPort: { type: 'int', default: 3002, min: 0, max: 65535, group: 'Listeners', value: 'N', help: 'transcription listener' },
  apiKey: { type: 'string', group: 'Listeners', value: 'KEY', help: 'require Authorization: Bearer KEY (better given as PARLEY_API_KEY)' },
  apiKeys: {
    type: 'string',
    group: 'Listeners',
    value: 'FILE',
    help: 'JSON file of keys with names and limits (docs/api.md), besides {apiKey}; read again when it changes, and at SIGHUP',
  },
  adminKey: {
    type: 'string',
    aka: 'admin-api-key',
    group: 'Listeners',
    value: 'KEY',
    help: 'key of /flush_cache, /abort_request and /server_info; default: {apiKey}; with neither, the first two answer this machine only. --admin-api-key, as in SGLang, is the same',
  },
  tlsCert: {
    type: 'string',
    group: 'Listeners',
    value: 'FILE',
    help: 'serve HTTPS with this certificate (PEM, with its chain); read again when it changes, and at SIGHUP',
  },
  tlsKey: { type: 'string', group: 'Listeners', value: 'FILE', help: "the certificate's private key (PEM)" },
  tlsClientCa: { type: 'string', group: 'Listeners', value: 'FILE', help: 'let in only clients with a certificate that these sign (PEM)' },
  corsOrigin: {
    type: 'list',
    default: [],
    group: 'Listeners',
    value: 'ORIGINS',
    help: 'origins of pages that may use the listeners, besides loopback and own ones; * = any',
  },
  allowedHosts: {
    type: 'list',
    default: [],
    group: 'Listeners',
    value: 'NAMES',
    help: 'host names to answer to, with and without a key, besides addresses, localhost, single labels and *.svc; * = any',
  },
  attentionBackend: {
    type: 'string',
    choices: ['paged', 'triton'],
    default: 'paged',
    group: 'Kernels',
    help: "paged attention in WGSL; 'triton' is another name for it",
  },
  graphCapture: {
    type: 'string',
    choices: ['piecewise'],
    default: 'piecewise',
    group: 'Kernels',
    help: 'decode steps replay plans captured for each batch size; there is no other way',
  },
  dawnToggles: {
    type: 'string',
    choices: ['default', 'fast'],
    default: 'default',
    group: 'Kernels',
    help: 'fast drops checks that guard against untrusted shaders',
  },
  modelOptional: { type: 'boolean', default: false, group: 'API behaviour', help: "accept requests without 'model'" },
  reasoningField: {
    type: 'string',
    choices: REASONING_FIELDS,
    default: 'reasoning_content',
    group: 'API behaviour',
    help: "where a thinking model's thoughts go",
  },
  legacySpeech: { type: 'boolean', default: true, group: 'API behaviour', help: 'accept the earlier speech form {text, voice_ref}' },
  voiceAlias: {
    type: 'list',
    default: VOICE_ALIAS_LIST,
    defaultIs: "OpenAI's 13 names and the bundled model's 19: docs/audio.md",
    group: 'API behaviour',
    value: 'NAME=VOICE,...',
    help: "other names of voices, or of blends such as a(0.5)+b(0.5); after | what a model without these has; what is given replaces all, and '' is none",
  },
  speechDefaultFormat: {
    type: 'string',
    choices: SPEECH_FORMATS,
    default: 'mp3',
    group: 'API behaviour',
    help: 'speech when response_format is absent',
  },
  maxInputChars: {
    type: 'int',
    default: 4096,
    min: 1,
    max: 1_000_000,
    group: 'API behaviour',
    value: 'N',
    help: 'characters of text in a speech request',
  },
  maxUploadMib: { type: 'int', default: 25, min: 1, max: 1024, group: 'API behaviour', value: 'N', help: 'size of an audio upload' },
  drainDelay: {
    type: 'number',
    default: 0,
    min: 0,
    max: LONGEST_WAIT,
    group: 'Process',
    value: 'SECONDS',
    help: 'after a signal, keep serving this long with readiness off',
  },
  drainTimeout: {
    type: 'number',
    default: 45,
    min: 0,
    max: LONGEST_WAIT,
    group: 'Process',
    value: 'SECONDS',
    help: 'then let running requests take this long',
  },
  watchdogTimeout: {
    type: 'number',
    default: 60,
    min: 1,
    group: 'Process',
    value: 'SECONDS',
    help: 'restart the engine after this long without GPU progress',
  },
  logLevel: {
    type: 'string',
    choices: ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'],
    default: 'warn',
    group: 'Process',
    help: 'JSON lines on stderr; info has one line a request',
  },
  logRequests: {
    type: 'boolean',
    default: false,
    group: 'Process',
    help: 'one line a request at every {logLevel}: route, status, times and counts, nothing of what was asked or answered',
  },
  config: {
    type: 'string',
    group: 'Process',
    value: 'FILE',
    help: 'JSON object with these names as keys; command line and environment win',
  },
  help: { type: 'boolean', default: false, group: 'Process', help: 'print this' },
});

const ROWS = { ...SERVER_SETTINGS, ...ENGINE_SETTINGS };

/** Type of all settings: value by key. */
export type Settings = SettingsOf<typeof SERVER_SETTINGS> & SettingsOf<typeof ENGINE_SETTINGS>;
export type SettingKey = keyof typeof ROWS;

type GroupsOf<T> = { [K in keyof T]: T[K] extends { readonly group: infer G extends string } ? G : never }[keyof T];

/** Headings of --help by group, in their order; text in parentheses is a remark. */
const HEADINGS: Readonly<Record<GroupsOf<typeof ROWS>, string>> = {
  Models: 'Models',
  Listeners: 'Listeners',
  'Chat scheduling': 'Chat scheduling (names and meaning as in SGLang)',
  Device: 'Device (npx parley adapters lists the GPUs)',
  Kernels: 'Kernels',
  'API behaviour': 'API behaviour',
  Process: 'Process',
};

/** A setting that an operator can make. */
export type Flag = Setting & {
  /** Its key in `Settings`. */
  readonly key: SettingKey;
  /** Name without the dashes; also the key in a --config file, and PARLEY_<NAME> in the environment. */
  readonly name: string;
  readonly heading: string;
};

/** Name of a setting's flag, without the dashes before it. */
export const flagName = (key: SettingKey): string => dashed(key);

const ENTRIES = Object.entries(ROWS) as [SettingKey, Setting][];

/** Every setting of the server and its engine, in the order of --help. */
export const FLAGS: readonly Flag[] = Object.entries(HEADINGS).flatMap(([group, heading]) =>
  ENTRIES.filter(([, row]) => row.group === group).map(([key, row]) => ({
    ...row,
    key,
    name: flagName(key),
    heading,
    help: row.help.replace(/\{(\w+)\}/g, (whole, name) => (name in ROWS ? `--${flagName(name as SettingKey)}` : whole)),
  })),
);

/** Settings that /server_info does not show: keys, where they lie, and what only the start needs. */
const HIDDEN: readonly SettingKey[] = ['apiKey', 'adminKey', 'apiKeys', 'tlsKey', 'config', 'help'];
export const SHOWN_FLAGS: readonly Flag[] = FLAGS.filter(({ key }) => !HIDDEN.includes(key));

/** Defaults of the settings that have one, including the engine's without a flag. */
export const DEFAULTS: Readonly<Partial<Settings>> = defaultsOf(ROWS);

/** A flag's default as people read it; undefined for a switch, and where there is none. */
export function defaultOf(flag: Flag): string | undefined {
  if (flag.type === 'boolean' || flag.default === undefined || String(flag.default) === '') return undefined;
  return 'defaultIs' in flag ? flag.defaultIs : String(flag.default);
}

/** Placeholder of a flag's value in --help: its choices, or what kind of value it is. */
export function placeholder(flag: Flag): string {
  if (flag.type === 'boolean') return '';
  return ` ${(flag.type === 'string' ? flag.choices?.join('|') : undefined) ?? flag.value ?? 'VALUE'}`;
}
