/** All settings of the engine. This is the only place that interprets them. */
import { defaultsOf, defineSettings } from './util/setting.ts';
import type { SettingsOf } from './util/setting.ts';

export interface ModelSource {
  /** Folder (Node) or base URL (browser) of a checkpoint in its public format. */
  readonly path: string;
  /** Id that it is served under; default: the last part of the path. */
  readonly id?: string;
  /** chat: sampling parameters, by their names in generation_config.json, for a model whose own files give no temperature. */
  readonly sampling?: Readonly<Record<string, number>>;
  /** chat: LoRA adapters that requests may name, by the ids that they are served under; `path` is a folder of PEFT, or a GGUF file of llama.cpp. */
  readonly loras?: readonly { readonly id: string; readonly path: string }[];
}

/** Speculative decoding by prompt lookup: drafts are copied from earlier text (scheduler/prompt-lookup.ts). */
export interface PromptLookup {
  /** Most draft tokens of a sequence that one step verifies. */
  readonly draftTokens: number;
  /** The shortest and the longest run of last tokens that is looked for in the earlier text. */
  readonly minMatch: number;
  readonly maxMatch: number;
}

/** The table of settings: name (SGLang's where SGLang has the setting), type, default, bounds and meaning. Flags, variables and documentation derive from it. */
export const ENGINE_SETTINGS = defineSettings({
  trustRemoteCode: {
    type: 'boolean',
    default: false,
    group: 'Models',
    help: "run a chat model folder's own parley_model.mjs, with all rights of this program",
  },
  maxRunningRequests: {
    type: 'int',
    default: 128,
    min: 1,
    max: 4096,
    group: 'Chat scheduling',
    value: 'N',
    help: 'sequences computed at once; others wait',
  },
  contextLength: {
    type: 'int',
    default: 32768,
    min: 16,
    group: 'Chat scheduling',
    value: 'TOKENS',
    help: "prompt + output; the model's own limit also holds",
  },
  /** See `prefillChunkSize`. */
  chunkedPrefillSize: {
    type: 'int',
    words: ['auto'],
    default: 'auto',
    min: 16,
    group: 'Chat scheduling',
    value: 'TOKENS',
    help: 'prompt tokens computed in one step; auto = as many as take 200 ms, at most 4096; on software adapters 256',
  },
  maxQueuedRequests: {
    type: 'int',
    default: 512,
    min: 1,
    group: 'Chat scheduling',
    value: 'N',
    help: 'waiting requests beyond which new ones are refused',
  },
  pageSize: { type: 'int', default: 16, min: 1, max: 256, group: 'Chat scheduling', value: 'TOKENS', help: 'tokens per KV page' },
  schedulePolicy: {
    type: 'string',
    choices: ['lpm', 'fcfs'],
    default: 'lpm',
    group: 'Chat scheduling',
    help: 'order of waiting requests: longest cached prefix first (with ageing), or first come, first served',
  },
  disableRadixCache: {
    type: 'boolean',
    default: false,
    group: 'Chat scheduling',
    help: 'compute every prompt anew instead of sharing equal prefixes',
  },
  disableOverlapSchedule: {
    type: 'boolean',
    default: false,
    group: 'Chat scheduling',
    help: 'submit a step only after the tokens of the one before were read',
  },
  enablePriorityScheduling: {
    type: 'boolean',
    default: false,
    group: 'Chat scheduling',
    help: "obey the field 'priority' of requests: higher goes first",
  },
  prioritySchedulingPreemptionThreshold: {
    type: 'int',
    default: 10,
    min: 0,
    group: 'Chat scheduling',
    value: 'N',
    help: 'with priorities: one higher by more than this takes a running place',
  },
  /** Has no effect on sequences with penalties or a grammar. */
  speculativeNgram: {
    type: 'boolean',
    default: false,
    group: 'Chat scheduling',
    help: 'guess tokens from earlier text and verify several a step: same answers, sooner where they repeat it',
  },
  speculativeMtp: {
    type: 'boolean',
    default: false,
    group: 'Chat scheduling',
    help: "guess tokens with the model's own head (mtp, of Qwen3.5 and 3.6) and verify several a step: same answers",
  },
  /** See `promptLookup` and `headDrafts`. */
  speculativeNumDraftTokens: {
    type: 'int',
    words: ['auto'],
    default: 'auto',
    min: 1,
    max: 64,
    group: 'Chat scheduling',
    value: 'N',
    help: 'guesses a sequence has verified in one step; auto = 7 from earlier text, 3 of a head',
  },
  speculativeNgramMinMatchWindowSize: {
    type: 'int',
    default: 3,
    min: 1,
    group: 'Chat scheduling',
    value: 'N',
    help: 'shortest run of last tokens that is looked up in the earlier text',
  },
  speculativeNgramMaxMatchWindowSize: {
    type: 'int',
    default: 5,
    min: 1,
    group: 'Chat scheduling',
    value: 'N',
    help: 'longest such run',
  },
  autotune: {
    type: 'boolean',
    default: true,
    group: 'Device',
    help: 'measure at the start which kernels are fastest on a GPU, 3 s at most, and keep it for the next start; software adapters have nothing to measure',
  },
  numerics: {
    type: 'string',
    choices: ['invariant', 'fast'],
    default: 'invariant',
    group: 'Kernels',
    help: 'invariant = prompts and answers are computed with the same bits; fast = prompts of the chat model take subgroup matrices, where the adapter has them (docs/numerics.md)',
  },
  adapter: {
    type: 'string',
    group: 'Device',
    value: 'NAME',
    help: "part of the GPU's name, #1 for a second of one name; default: the best",
  },
  chatAdapter: { type: 'string', group: 'Device', value: 'NAME', help: 'GPU of the chat model; default: as {adapter}' },
  speechAdapter: { type: 'string', group: 'Device', value: 'NAME', help: 'GPU of the speech model' },
  transcriptionAdapter: { type: 'string', group: 'Device', value: 'NAME', help: 'GPU of the transcription model' },
  adapters: {
    type: 'list',
    default: [],
    group: 'Device',
    value: 'NAMES',
    help: 'GPUs the chat model is split across, in the order of the parts; one may come twice',
  },
  memFractionStatic: {
    type: 'number',
    default: 0.8,
    min: 0.05,
    max: 1,
    group: 'Device',
    value: 'SHARE',
    help: 'share of the device memory for weights, activations and KV pages of all models on it',
  },
  /** In bytes; flags give GiB. */
  deviceMemory: {
    type: 'number',
    min: 0.1,
    max: 16_384,
    scale: 2 ** 30,
    group: 'Device',
    value: 'GIB',
    help: 'device memory, which WebGPU does not report; default: probed',
  },
  tpSize: {
    type: 'int',
    words: ['auto'],
    default: 'auto',
    min: 1,
    max: 99,
    group: 'Device',
    value: 'N',
    help: 'parts of every layer of the chat model, each on a GPU; auto = 2 where {adapters} has two, else 1',
  },
  ppSize: {
    type: 'int',
    words: ['auto'],
    default: 1,
    min: 1,
    max: 99,
    group: 'Device',
    value: 'N',
    help: 'groups of consecutive layers of the chat model, each on a GPU (or on {tpSize} of them)',
  },
  ppSplit: {
    type: 'ints',
    words: ['auto'],
    default: 'auto',
    min: 1,
    group: 'Device',
    value: 'LAYERS',
    help: 'layers of each group, as 12,12; auto = in proportion to measured speed',
  },
  /** See `weightStorage`. f16 is read with unpack2x16float, so it needs no adapter feature. */
  dtype: {
    type: 'string',
    choices: ['auto', 'f32', 'f16'],
    default: 'auto',
    group: 'Device',
    help: 'storage of weights: auto = quantised ones as the file has them, others f16; arithmetic is f32',
  },
  /** Matrices whose rows are not a multiple of 32 long are stored as `dtype` says. */
  quantization: {
    type: 'string',
    choices: ['none', 'q8_0', 'q4_0'],
    default: 'none',
    group: 'Device',
    help: 'bits that matrices of float weights are packed to as they load; tables of tokens have 8 at least',
  },
  /** 'auto' = the float type of the weights. */
  kvCacheDtype: {
    type: 'string',
    choices: ['auto', 'f32', 'f16', 'int8'],
    default: 'auto',
    group: 'Device',
    help: 'storage of KV pages: auto = f16, or f32 with {dtype} f32; int8 holds nearly twice the tokens of f16',
  },
  samplingDefaults: {
    type: 'string',
    choices: ['model', 'openai'],
    default: 'model',
    group: 'API behaviour',
    help: "sampling where a request says nothing: the model's generation_config.json, then what is recommended for the model (docs/models.md), then temperature 0.7 and top_p 0.95; openai = 1 and 1",
  },
  /** For multilingual transcription models, if a request names no language. */
  transcriptionLanguage: {
    type: 'string',
    default: 'en',
    group: 'API behaviour',
    value: 'CODE',
    help: 'language of speech whose language a transcription model is less than half sure of, as ISO 639-1; auto = what it guesses',
  },
  autoTruncateMaxTokens: {
    type: 'boolean',
    default: false,
    group: 'API behaviour',
    help: 'answer to the edge of the context where more tokens are asked for, instead of refusing',
  },
  maxSpeechPhonemes: {
    type: 'int',
    default: 8192,
    min: 160,
    group: 'API behaviour',
    value: 'N',
    help: 'phonemes of a speech request, 16 a second; slower speech counts for more',
  },
  rankThreads: {
    type: 'boolean',
    default: true,
    help: "a thread for each rank of a split model, where the platform has threads; else the ranks share the engine's",
  },
});

/** An engine's models and settings. */
export interface EngineConfig extends SettingsOf<typeof ENGINE_SETTINGS> {
  readonly chat?: ModelSource;
  readonly speech?: ModelSource;
  readonly transcription?: ModelSource;
  /** Folder of Silero VAD, which finds the speech in audio before it is transcribed; absent = all audio is transcribed. */
  readonly vad?: Pick<ModelSource, 'path'>;
}

/** The default of every setting, without models. */
export const DEFAULT_ENGINE_CONFIG: EngineConfig = defaultsOf(ENGINE_SETTINGS);

/** Fills in defaults. */
export function resolveConfig(config: Partial<EngineConfig>): EngineConfig {
  return { ...DEFAULT_ENGINE_CONFIG, ...config };
}

/** Sizes of tensor and pipeline parallelism of the chat model. Naming several adapters asks for a split. */
export function splitOf({ tpSize, ppSize, adapters }: EngineConfig): { readonly tpSize: number; readonly ppSize: number } {
  const groups = ppSize === 'auto' ? 1 : ppSize;
  return { tpSize: tpSize === 'auto' ? (adapters.length > 1 && groups === 1 ? 2 : 1) : tpSize, ppSize: groups };
}

/** The adapter of each rank of the chat model, which has one rank unless it is split; undefined = the platform's best. */
export function chatAdapters(config: EngineConfig): readonly (string | undefined)[] {
  const { tpSize, ppSize } = splitOf(config);
  const names = tpSize * ppSize > 1 && config.adapters.length > 0 ? config.adapters : [config.chatAdapter ?? config.adapter];
  return Array.from({ length: tpSize * ppSize }, (_, rank) => names[rank % names.length]);
}

/** Default number of drafts by prompt lookup: with the token itself they are eight rows per sequence, as many as one dispatch of the software adapters' kernels takes. */
const LOOKUP_DRAFTS = 7;
/** Default number of drafts by the model's draft head, which is less sure of each that follows one of its own. */
const HEAD_DRAFTS = 3;

/** Most draft tokens by the model's draft head that one step verifies for a sequence; 0 = it is not used. */
export function headDrafts({ speculativeMtp, speculativeNumDraftTokens: drafts }: EngineConfig): number {
  if (!speculativeMtp) return 0;
  return drafts === 'auto' ? HEAD_DRAFTS : drafts;
}

/** The settings of prompt lookup; undefined = it is off. */
export function promptLookup(config: EngineConfig): PromptLookup | undefined {
  if (!config.speculativeNgram) return undefined;
  const { speculativeNumDraftTokens: drafts } = config;
  return {
    draftTokens: drafts === 'auto' ? LOOKUP_DRAFTS : drafts,
    minMatch: config.speculativeNgramMinMatchWindowSize,
    maxMatch: config.speculativeNgramMaxMatchWindowSize,
  };
}

/** Prompt tokens per step. A step of 4096 takes seconds on a software adapter, and delays the decodes in it as long, so 'auto' is less there. */
export function prefillChunkSize(setting: EngineConfig['chunkedPrefillSize'], software: boolean): number {
  if (setting !== 'auto') return setting;
  return software ? SOFTWARE_CHUNK : 4096;
}

/** Prompt tokens per step on software adapters. GPUs begin with as many, and go up to 4096 while steps stay short (PrefillPace). */
export const SOFTWARE_CHUNK = 256;

/** How weights are stored on a device. */
export interface WeightStorage {
  /** Type of weights that are not quantised. */
  readonly float: 'f32' | 'f16';
  /** Keep matrices that the file has quantised in its blocks. */
  readonly keepBlocks: boolean;
  /** Type that other matrices are quantised to. */
  readonly quantization: EngineConfig['quantization'];
}

/** The storage that the settings ask for. */
export function weightStorage({ dtype, quantization }: Pick<EngineConfig, 'dtype' | 'quantization'>): WeightStorage {
  return { float: dtype === 'auto' ? 'f16' : dtype, keepBlocks: dtype === 'auto', quantization };
}

/** Storage without any quantised matrices. */
export function floatStorage(float: WeightStorage['float']): WeightStorage {
  return { float, keepBlocks: false, quantization: 'none' };
}
