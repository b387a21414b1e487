/** What an engine reports of itself: models, memory, adapter and kernels. Plain data, as in `api.ts`. */
import type { ModelTask } from './model-types.ts';

export interface ModelInfo {
  /** Served id, e.g. `parley-chat`. */
  readonly id: string;
  readonly task: ModelTask;
  /** config.json's model_type, e.g. `llama`. */
  readonly architecture: string;
  /** Format of the checkpoint if it is not safetensors, e.g. `GGUF Q4_K_M`. */
  readonly format?: string;
  readonly parameters: number;
  /** Size of the weights on the device, in bytes. */
  readonly weightBytes: number;
  /** chat: effective context in tokens. */
  readonly contextLength?: number;
  /** chat: context that the model was trained for, in tokens; settings and memory may allow less. */
  readonly ownContextLength?: number;
  /** chat: default sampling parameters by their HTTP names, without those that have no effect. */
  readonly sampling?: Readonly<Record<string, number>>;
  /** chat: `fast` if prompts are computed with subgroup matrices, which needs the setting and an adapter that has them. */
  readonly numerics?: 'invariant' | 'fast';
  /** chat: ids of its LoRA adapters; absent = there are none. */
  readonly loras?: readonly string[];
  /** chat: use of the device's memory. */
  readonly memory?: MemoryUse;
  /** chat, if split over several devices: adapter and memory of each; `memory` is that of the fullest one. */
  readonly ranks?: readonly { readonly adapter: string; readonly memory: MemoryUse }[];
  /** speech: names of the voices, and the sample rate in Hz. */
  readonly voices?: readonly string[];
  readonly sampleRate?: number;
  /** speech: languages that it speaks, as tags of util/speech-languages.ts. Transcription: languages that it understands, as ISO 639-1 codes. */
  readonly languages?: readonly string[];
  /** transcription: whether it can translate speech into English. */
  readonly translates?: boolean;
  /** The model's adapter, if it is not the engine's. */
  readonly adapter?: AdapterInfo;
}

/** The planned use of one device's memory, in bytes, made before its models are loaded. */
export interface MemoryPlan {
  readonly deviceBytes: number;
  /** Where `deviceBytes` comes from, e.g. `as set`, `nvidia-smi`. */
  readonly source: string;
  /** Share of the device's memory that may be used. */
  readonly fraction: number;
  readonly models: readonly ModelMemory[];
  /** Total of all models. */
  readonly totalBytes: number;
}

/** A model's part of a MemoryPlan. */
export interface ModelMemory {
  readonly id: string;
  readonly task: ModelTask;
  readonly weightBytes: number;
  /** Activations, tables and other buffers of a fixed size. */
  readonly activationBytes: number;
  /** chat: KV pages. */
  readonly pages?: MemoryUse;
}

/** What the headers of a model's files tell before it is loaded. */
export interface ModelDescription extends Pick<
  ModelInfo,
  'id' | 'task' | 'architecture' | 'format' | 'weightBytes' | 'ownContextLength' | 'voices' | 'sampleRate' | 'languages' | 'translates'
> {
  /** chat: bytes of keys and values per token, of the layers with full attention. */
  readonly tokenBytes?: number;
  /** chat: bytes of keys and values of the sliding-window layers when their window is full; absent = there are none. */
  readonly windowBytes?: number;
}

/** A device's memory and a chat model's use of it, in bytes. */
export interface MemoryUse {
  readonly deviceBytes: number;
  /** Where `deviceBytes` comes from, e.g. `as set`, `nvidia-smi`. */
  readonly source: string;
  /** Share of the device's memory that may be used. */
  readonly fraction: number;
  /** Used by models that were loaded earlier. */
  readonly otherBytes: number;
  readonly weightBytes: number;
  readonly activationBytes: number;
  readonly kvBytes: number;
  readonly kvPages: number;
  /** Pages of the sliding-window layers, which are freed once they lie behind the window; absent = no such layers. `kvPages` does not count them. */
  readonly windowPages?: number;
  /** Tokens per page. */
  readonly pageSize: number;
  readonly kvCacheDtype: string;
  /** Recurrent-state slots for running and cached sequences, and their bytes; absent = no recurrent layers. */
  readonly stateSlots?: number;
  readonly stateBytes?: number;
}

export interface AdapterInfo {
  readonly name: string;
  readonly vendor: string;
  readonly architecture: string;
  readonly software: boolean;
  /** Which kernels it gets: `cpu` = shaped for the SIMD registers of a software adapter, `generic` = shaped for a GPU's workgroups and their memory. */
  readonly family: 'cpu' | 'generic';
  readonly features: readonly string[];
  readonly limits: Readonly<Record<string, number>>;
}

export interface EngineInfo {
  /** Adapter of the chat model, or of the first model if there is none. */
  readonly adapter: AdapterInfo;
  readonly models: readonly ModelInfo[];
  /** Plans by device, the chat model's first. The devices of a split chat model have plans of their own (ModelInfo.ranks). */
  readonly memory?: readonly MemoryPlan[];
  readonly kernels?: KernelReport;
}

/** Results of the self-test and the autotune at start. */
export interface KernelReport {
  /** Number of pipelines that agreed with the plain reference, over all devices and the ranks of a split model. */
  readonly tested: number;
  /** Kernels that failed, each with its replacement and the reason. */
  readonly replaced: readonly { readonly kernel: string; readonly by: string; readonly why: string }[];
  /** Choices of the autotune, made now or at an earlier start; absent if there was nothing to choose. */
  readonly tuned?: readonly TunedKernel[];
}

/** The autotune's choice for a class of shapes. */
export interface TunedKernel {
  readonly shape: string;
  readonly chosen: string;
  /** Time of each candidate, the default first; absent if an earlier start measured. */
  readonly microseconds?: Readonly<Record<string, number>>;
}

/** GPU time of one kernel variant since profiling was switched on. */
export interface ProfileEntry {
  readonly label: string;
  readonly count: number;
  readonly milliseconds: number;
  /** Start (relative to the first dispatch of all) and duration in microseconds of each run, among the first ten thousand or so dispatches. */
  readonly spans?: readonly (readonly [start: number, length: number])[];
  /** Bytes read and written, and arithmetic operations, in total; `...APosition` is the part that grows with each position of the sequences. */
  readonly work?: {
    readonly read: number;
    readonly written: number;
    readonly operations: number;
    readonly readAPosition: number;
    readonly operationsAPosition: number;
  };
}
