/** Every engine setting with its unit and default; the only place a setting is interpreted. */

export interface ModelSource {
  /** Folder (Node) or base URL (browser) of a checkpoint in its public format. */
  readonly path: string;
  /** Served id; default: the folder's last name. */
  readonly id?: string;
}

/** How speculative decoding guesses (scheduler/prompt-lookup.ts). */
export interface PromptLookup {
  /** Guesses a sequence may have verified in one step. */
  readonly draftTokens: number;
  /** How many of the last tokens must have come before for a guess, at least, and how many are compared, at most. */
  readonly minMatch: number;
  readonly maxMatch: number;
}

/** Guesses as verified where nothing else is asked for: eight rows a sequence, what one dispatch of the software adapters' kernels takes. */
export const DEFAULT_PROMPT_LOOKUP: PromptLookup = { draftTokens: 7, minMatch: 3, maxMatch: 5 };

export interface EngineConfig {
  readonly chat?: ModelSource;
  readonly speech?: ModelSource;
  readonly transcription?: ModelSource;
  /** Part of the adapter's name, or absent for the platform's best. */
  readonly adapter?: string;
  /** The same for single tasks; those without take `adapter`. */
  readonly taskAdapters: { readonly chat?: string; readonly speech?: string; readonly transcription?: string };
  /** Adapters every layer of the chat model is split over (SGLang: tp-size), and groups of consecutive layers (pp-size). */
  readonly tpSize: number;
  readonly ppSize: number;
  /** Layers of each group; 'auto' = in proportion to the adapters' measured speed. */
  readonly ppSplit: 'auto' | readonly number[];
  /** Names of the adapters the ranks take in turn; empty = all take `adapter`. */
  readonly adapters: readonly string[];
  /** A thread for each rank of a split model, where the platform has threads; else the ranks share the engine's. */
  readonly rankThreads: boolean;
  /** Sequences in one batch (SGLang: max-running-requests). */
  readonly maxRunningRequests: number;
  /** Tokens of prompt + output; the effective context is the smaller of this and the model's own. */
  readonly contextLength: number;
  /** Where prompt and asked-for answer exceed the context, answer as far as it goes instead of refusing. */
  readonly autoTruncateMaxTokens: boolean;
  /** Prompt tokens computed in one step; 'auto' = by the adapter (`prefillChunkSize`). */
  readonly chunkedPrefillSize: number | 'auto';
  /** Share of `deviceMemory` for weights + KV pages. */
  readonly memFractionStatic: number;
  /** Bytes; absent = probed. */
  readonly deviceMemory?: number;
  /** Waiting requests beyond which new ones are refused. */
  readonly maxQueuedRequests: number;
  /** Order of the waiting queue: longest cached prefix first (with ageing), or first come, first served. */
  readonly schedulePolicy: 'lpm' | 'fcfs';
  /** Share the KV pages of equal prefixes between requests. */
  readonly radixCache: boolean;
  /** Heed the priorities of requests: higher goes first. Off, they are ignored. */
  readonly priorityScheduling: boolean;
  /** With priorities: a waiting request takes the place of a running one whose priority is lower by more than this. */
  readonly preemptionThreshold: number;
  /** Submit a step before the tokens of the one before are read. */
  readonly overlapSchedule: boolean;
  /** Verify guesses beside each next token: the same tokens in fewer steps where text repeats. Sequences with penalties or a format go without. Absent = off. */
  readonly promptLookup?: PromptLookup;
  /** Tokens a KV page. */
  readonly pageSize: number;
  /** Weight storage; 'auto' = f16, which is read through unpack2x16float and so needs no adapter feature. */
  readonly dtype: 'auto' | 'f32' | 'f16';
  /** Storage of keys and values; 'auto' = that of the weights. int8 takes about half the memory of f16. */
  readonly kvCacheDtype: 'auto' | 'f32' | 'f16' | 'int8';
  /** Phonemes that one speech request may have; slower speech counts for more. */
  readonly maxSpeechPhonemes: number;
  /** Run the code that a model folder brings along (models/remote.ts). */
  readonly trustRemoteCode: boolean;
}

export const DEFAULT_ENGINE_CONFIG: EngineConfig = {
  taskAdapters: {},
  tpSize: 1,
  ppSize: 1,
  ppSplit: 'auto',
  adapters: [],
  rankThreads: true,
  maxRunningRequests: 128,
  contextLength: 32768,
  autoTruncateMaxTokens: false,
  chunkedPrefillSize: 'auto',
  memFractionStatic: 0.8,
  maxQueuedRequests: 512,
  schedulePolicy: 'lpm',
  radixCache: true,
  priorityScheduling: false,
  preemptionThreshold: 10,
  overlapSchedule: true,
  pageSize: 16,
  dtype: 'auto',
  kvCacheDtype: 'auto',
  maxSpeechPhonemes: 8192,
  trustRemoteCode: false,
};

/** Fills in defaults. */
export function resolveConfig(config: Partial<EngineConfig>): EngineConfig {
  return { ...DEFAULT_ENGINE_CONFIG, ...config };
}

/** The adapter of each rank of the chat model, which is one unless it is split; undefined = the platform's best. */
export function chatAdapters(config: EngineConfig): readonly (string | undefined)[] {
  const { tpSize, ppSize, adapters, taskAdapters, adapter } = config;
  const names = tpSize * ppSize > 1 && adapters.length > 0 ? adapters : [taskAdapters.chat ?? adapter];
  return Array.from({ length: tpSize * ppSize }, (_, rank) => names[rank % names.length]);
}

/** Prompt tokens a step. A step of 4096 takes seconds on a software adapter, and the decodes beside it as long: 'auto' is less there. */
export function prefillChunkSize(setting: number | 'auto', software: boolean): number {
  if (setting !== 'auto') return setting;
  return software ? 256 : 4096;
}

/** The storage a setting stands for. */
export function storageType(setting: 'auto' | 'f32' | 'f16'): 'f32' | 'f16' {
  return setting === 'auto' ? 'f16' : setting;
}
