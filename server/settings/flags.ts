/** The table of settings: command line, environment, --config file and --help are all made from it. */
import { DEFAULT_PROMPT_LOOKUP as LOOKUP } from '../../engine/config.ts';
import { VOICE_ALIAS_LIST } from '../speech/voice-aliases.ts';

export type FlagType = 'string' | 'int' | 'number' | 'boolean' | 'list';

export interface Flag {
  /** Without the dashes; also the key in a --config file, and PARLEY_<NAME> in the environment. */
  readonly name: string;
  readonly type: FlagType;
  readonly help: string;
  readonly default?: string | number | boolean;
  /** Placeholder of the value in --help. */
  readonly value?: string;
  readonly min?: number;
  readonly max?: number;
  readonly choices?: readonly string[];
  readonly group: string;
}

type Fields = Omit<Flag, 'group'>;
type Extra = Partial<Pick<Flag, 'min' | 'max'>>;
const text = (name: string, value: string, help: string, standard?: string, extra: Extra = {}): Fields => ({
  name,
  type: 'string',
  value,
  help,
  ...(standard !== undefined && { default: standard }),
  ...extra,
});
const list = (name: string, value: string, help: string, standard = ''): Fields => ({ name, type: 'list', value, help, default: standard });
const int = (name: string, value: string, help: string, standard: number | undefined, extra: Extra): Fields => ({
  name,
  type: 'int',
  value,
  help,
  ...(standard !== undefined && { default: standard }),
  ...extra,
});
const number = (name: string, value: string, help: string, standard: number | undefined, extra: Extra): Fields => ({
  name,
  type: 'number',
  value,
  help,
  ...(standard !== undefined && { default: standard }),
  ...extra,
});
const choice = (name: string, choices: readonly string[], help: string, standard: string, extra: Extra = {}): Fields => ({
  name,
  type: 'string',
  choices,
  help,
  default: standard,
  ...extra,
});
const toggle = (name: string, help: string, standard = false, extra: Extra = {}): Fields => ({
  name,
  type: 'boolean',
  help,
  default: standard,
  ...extra,
});

const PORT = { min: 0, max: 65535 };
const LEVELS = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'];

const GROUPS: Readonly<Record<string, readonly Fields[]>> = {
  Models: [
    text('chat-model', 'FOLDER', 'chat checkpoint (Hugging Face layout), or none', 'models/parley-chat'),
    text('speech-model', 'FOLDER', 'speech checkpoint, or none', 'models/parley-speech'),
    text('transcription-model', 'FOLDER', 'transcription checkpoint, or none', 'models/parley-transcribe'),
    text('served-model-name', 'ID', "id of the chat model; default: its folder's name"),
    list('chat-alias', 'IDS', 'other ids the chat model answers to'),
    list('speech-alias', 'IDS', 'other ids the speech model answers to', 'tts-1,tts-1-hd,gpt-4o-mini-tts'),
    list('transcription-alias', 'IDS', 'other ids the transcription model answers to', 'whisper-1'),
    toggle('trust-remote-code', "run a chat model folder's own parley_model.mjs, with all rights of this program"),
  ],
  Listeners: [
    text('host', 'ADDRESS', 'interface of the three listeners; 0.0.0.0 = all of them, by IPv4 and IPv6', '0.0.0.0'),
    int('port', 'N', 'chat listener; 0 = any free port', 3000, PORT),
    int('speech-port', 'N', 'speech listener', 3001, PORT),
    int('transcription-port', 'N', 'transcription listener', 3002, PORT),
    text('api-key', 'KEY', 'require Authorization: Bearer KEY (better given as PARLEY_API_KEY)'),
    text(
      'admin-key',
      'KEY',
      'key of /flush_cache, /abort_request and /get_server_info; default: --api-key; with neither, the first two answer this machine only',
    ),
    list('cors-origin', 'ORIGINS', 'origins of pages that may use the listeners, besides loopback and own ones; * = any'),
    list(
      'allowed-hosts',
      'NAMES',
      'host names to answer to, with and without a key, besides addresses, localhost, single labels and *.svc; * = any',
    ),
  ],
  'Chat scheduling (names and meaning as in SGLang)': [
    int('max-running-requests', 'N', 'sequences in one batch', 128, { min: 1, max: 4096 }),
    int('context-length', 'TOKENS', "prompt + output; the model's own limit also holds", 32768, { min: 16 }),
    int('chunked-prefill-size', 'TOKENS', 'prompt tokens computed in one step; default: 4096, on software adapters 256', undefined, {
      min: 16,
    }),
    int('max-queued-requests', 'N', 'waiting requests beyond which new ones get 503', 512, { min: 1 }),
    int('page-size', 'TOKENS', 'tokens a KV page', 16, { min: 1, max: 256 }),
    choice(
      'schedule-policy',
      ['lpm', 'fcfs'],
      'order of waiting requests: longest cached prefix first, or first come, first served',
      'lpm',
    ),
    toggle('disable-radix-cache', 'compute every prompt anew instead of sharing equal prefixes'),
    toggle('disable-overlap-schedule', 'submit a step only after the tokens of the one before were read'),
    toggle('enable-priority-scheduling', "heed the requests' 'priority': higher goes first"),
    int('priority-scheduling-preemption-threshold', 'N', 'with priorities: one higher by more than this takes a running place', 10, {
      min: 0,
    }),
    toggle('speculative-ngram', 'guess tokens from earlier text and verify several a step: same answers, sooner where they repeat it'),
    int('speculative-num-draft-tokens', 'N', 'guesses a sequence has verified in one step', LOOKUP.draftTokens, { min: 1, max: 64 }),
    int('speculative-ngram-min-match-window-size', 'N', 'last tokens that must have come before', LOOKUP.minMatch, { min: 1 }),
    int('speculative-ngram-max-match-window-size', 'N', 'last tokens compared at most', LOOKUP.maxMatch, { min: 1 }),
  ],
  Device: [
    text('adapter', 'NAME', "part of the GPU's name (npx parley adapters lists them), #1 for a second of one name; default: the best"),
    text('chat-adapter', 'NAME', 'GPU of the chat model; default: as --adapter'),
    text('speech-adapter', 'NAME', 'GPU of the speech model'),
    text('transcription-adapter', 'NAME', 'GPU of the transcription model'),
    list('adapters', 'NAMES', 'GPUs the chat model is split across, in the order of the parts; one may come twice'),
    number('mem-fraction-static', 'SHARE', 'share of the device memory for weights and KV pages', 0.8, { min: 0.05, max: 1 }),
    number('device-memory', 'GIB', 'device memory, which WebGPU does not report; default: probed', undefined, { min: 0.1 }),
    text('tp-size', 'N', 'parts of every layer of the chat model, each on a GPU; auto = 2 where --adapters has two, else 1', 'auto'),
    text('pp-size', 'N', 'groups of consecutive layers of the chat model, each on a GPU (or on tp-size of them)', '1'),
    text('pp-split', 'LAYERS', 'layers of each group, as 12,12; auto = in proportion to measured speed', 'auto'),
    choice('dtype', ['auto', 'f32', 'f16'], 'storage of weights; arithmetic is f32', 'auto'),
    choice('kv-cache-dtype', ['auto', 'f32', 'f16', 'int8'], 'storage of KV pages; int8 holds nearly twice the tokens of f16', 'auto'),
    choice('attention-backend', ['paged', 'triton'], "paged attention in WGSL; 'triton' is another name for it", 'paged'),
    choice('graph-capture', ['piecewise'], 'decode steps replay plans captured for each batch size; there is no other way', 'piecewise'),
    choice('dawn-toggles', ['default', 'fast'], 'fast drops checks that guard against untrusted shaders', 'default'),
  ],
  'API behaviour': [
    toggle('auto-truncate-max-tokens', 'answer to the edge of the context where more tokens are asked for, instead of 400'),
    toggle('model-optional', "accept requests without 'model'"),
    choice('reasoning-field', ['reasoning_content', 'reasoning', 'both'], "where a thinking model's thoughts go", 'reasoning_content'),
    toggle('legacy-speech', 'accept the earlier speech form {text, voice_ref}', true),
    list(
      'voice-alias',
      'NAME=VOICE,...',
      "other names of voices, or of blends such as a(0.5)+b(0.5); after | what a model without these has; what is given replaces all of them, and '' is none",
      VOICE_ALIAS_LIST,
    ),
    choice('speech-default-format', ['mp3', 'wav', 'pcm'], 'speech when response_format is absent', 'mp3'),
    int('max-input-chars', 'N', 'characters of text in a speech request', 4096, { min: 1, max: 1_000_000 }),
    int('max-speech-phonemes', 'N', 'phonemes of a speech request, 16 a second; slower speech counts for more', 8192, { min: 160 }),
    int('max-upload-mib', 'N', 'size of an audio upload', 25, { min: 1, max: 1024 }),
  ],
  Process: [
    number('drain-delay', 'SECONDS', 'after a signal, keep serving this long with readiness off', 0, { min: 0 }),
    number('drain-timeout', 'SECONDS', 'then let running requests take this long', 45, { min: 0 }),
    number('watchdog-timeout', 'SECONDS', 'restart the engine after this long without GPU progress', 60, { min: 1 }),
    choice('log-level', LEVELS, 'JSON lines on stderr; info has one line a request', 'warn'),
    text('config', 'FILE', 'JSON object with these names as keys; command line and environment win'),
    toggle('help', 'print this'),
  ],
};

/** Every setting of the server, in the order of --help. Names that SGLang has are SGLang's. */
export const FLAGS: readonly Flag[] = Object.entries(GROUPS).flatMap(([group, flags]) => flags.map((flag) => ({ ...flag, group })));
