/** What the engine says of itself: its models, their memory, its adapter and its kernels. Plain data, as in `api.ts`. */
import type { ModelTask } from './model-types.ts';

export interface ModelInfo {
  /** Served id, e.g. `parley-chat`. */
  readonly id: string;
  readonly task: ModelTask;
  /** config.json's model_type, e.g. `llama`. */
  readonly architecture: string;
  /** What its weights are published as where that is not safetensors, e.g. `GGUF Q4_K_M`. */
  readonly format?: string;
  readonly parameters: number;
  /** Bytes of weights on the device. */
  readonly weightBytes: number;
  /** chat: effective context in tokens. */
  readonly contextLength?: number;
  /** chat: tokens the model itself is made for; the settings and the memory may allow fewer. */
  readonly ownContextLength?: number;
  /** chat: what a request that says nothing is sampled with, by HTTP names; numbers that change nothing are left out. */
  readonly sampling?: Readonly<Record<string, number>>;
  /** chat: `fast` where prompts take subgroup matrices: it was asked for, and the adapter has them. */
  readonly numerics?: 'invariant' | 'fast';
  /** chat: what it takes of the device's memory. */
  readonly memory?: MemoryUse;
  /** chat, split over several devices: each one's adapter and memory, of which `memory` is the fullest. */
  readonly ranks?: readonly { readonly adapter: string; readonly memory: MemoryUse }[];
  /** speech: voice names; sample rate in Hz. */
  readonly voices?: readonly string[];
  readonly sampleRate?: number;
  /** transcription: the languages that it knows, as ISO 639-1; whether it can write English for speech in other languages. */
  readonly languages?: readonly string[];
  readonly translates?: boolean;
  /** Its adapter, where that is another than the engine's. */
  readonly adapter?: AdapterInfo;
}

/** What the models of one device take of its memory, in bytes, as it was planned before they were loaded. */
export interface MemoryPlan {
  readonly deviceBytes: number;
  /** Who says how much the device has, e.g. `as set`, `nvidia-smi`. */
  readonly source: string;
  /** Share of the device's memory that may be taken. */
  readonly fraction: number;
  readonly models: readonly ModelMemory[];
  /** All models together. */
  readonly totalBytes: number;
}

/** One model's part of a plan. */
export interface ModelMemory {
  readonly id: string;
  readonly task: ModelTask;
  readonly weightBytes: number;
  /** Activations, tables and caches of a fixed size. */
  readonly activationBytes: number;
  /** chat: pages of keys and values. */
  readonly pages?: MemoryUse;
}

/** What a model's files say of it before it is loaded. */
export interface ModelDescription extends Pick<
  ModelInfo,
  'id' | 'task' | 'architecture' | 'format' | 'weightBytes' | 'ownContextLength' | 'voices' | 'sampleRate' | 'languages' | 'translates'
> {
  /** chat: bytes of keys and values a token, of the layers that keep them. */
  readonly tokenBytes?: number;
  /** chat: the same of the layers that see a window only, of a text that fills it; absent = there are none. */
  readonly windowBytes?: number;
}

/** A device's memory and what a chat model takes of it, in bytes. */
export interface MemoryUse {
  readonly deviceBytes: number;
  /** Who says how much the device has, e.g. `as set`, `nvidia-smi`. */
  readonly source: string;
  /** Share of the device's memory that may be taken. */
  readonly fraction: number;
  /** Taken by models loaded before. */
  readonly otherBytes: number;
  readonly weightBytes: number;
  readonly activationBytes: number;
  readonly kvBytes: number;
  readonly kvPages: number;
  /** Of the layers that see a window only, where there are such: their pages are let go behind it. `kvPages` are those of the others then. */
  readonly windowPages?: number;
  /** Tokens a page. */
  readonly pageSize: number;
  readonly kvCacheDtype: string;
  /** Of a model with recurrent layers: slots for states of sequences, running and cached, and what they take. */
  readonly stateSlots?: number;
  readonly stateBytes?: number;
}

export interface AdapterInfo {
  readonly name: string;
  readonly vendor: string;
  readonly architecture: string;
  readonly software: boolean;
  /** What kernels are shaped for: SIMD units that a driver makes a GPU of, or workgroups with memory of their own. */
  readonly family: 'cpu' | 'generic';
  readonly features: readonly string[];
  readonly limits: Readonly<Record<string, number>>;
}

export interface EngineInfo {
  /** The chat model's, or that of the first model there is. */
  readonly adapter: AdapterInfo;
  readonly models: readonly ModelInfo[];
  /** By device, the chat model's first; those of a split chat model plan for themselves (ModelInfo.ranks). */
  readonly memory?: readonly MemoryPlan[];
  readonly kernels?: KernelReport;
}

/** What the self-test at start found. */
export interface KernelReport {
  /** Pipelines that gave what plain loops give, on all devices, those of a split model included. */
  readonly tested: number;
  /** Kernels that failed, and those that do their work now. */
  readonly replaced: readonly { readonly kernel: string; readonly by: string; readonly why: string }[];
  /** What was measured, now or at an earlier start; absent where there was nothing to choose. */
  readonly tuned?: readonly TunedKernel[];
}

/** What was chosen for a class of shapes. */
export interface TunedKernel {
  readonly shape: string;
  readonly chosen: string;
  /** By candidate, the one that is taken without a measurement first; absent where an earlier start measured. */
  readonly microseconds?: Readonly<Record<string, number>>;
}

/** GPU time of one kernel variant since profiling was switched on. */
export interface ProfileEntry {
  readonly label: string;
  readonly count: number;
  readonly milliseconds: number;
  /** Of each time that it ran, of the first some ten thousand of all: start, since the first of all, and length, in microseconds. */
  readonly spans?: readonly (readonly [start: number, length: number])[];
  /** What it read and wrote, in bytes, and computed, all together; and what of it is for each position of its sequences. */
  readonly work?: {
    readonly read: number;
    readonly written: number;
    readonly operations: number;
    readonly readAPosition: number;
    readonly operationsAPosition: number;
  };
}
