/** The operations by which the coordinator drives a rank, and the types of their requests and results. */
import type { AdapterInfo, MemoryUse, TunedKernel } from '../api.ts';
import type { WeightStorage } from '../config.ts';
import type { DeviceStats } from '../gpu/caps.ts';
import type { Fault } from '../gpu/kernel-fault.ts';
import type { Shard } from '../models/shard.ts';
import type { KVType } from '../ops/kv.ts';
import type { StepLimits } from '../runner/step-input.ts';
import { value } from '../util/rpc.ts';
import type { CallMessage, Methods, NewsMessage } from '../util/rpc.ts';
import type { GroupSizes } from './group-memory.ts';
import type { RankPlace } from './link.ts';

/** A chat model and how it is stored on the device: plain data, the same for all ranks of a split model. */
export interface ChatModel {
  readonly id: string;
  /** Path of the model folder, which every rank opens for itself. */
  readonly path: string;
  /** The parsed config.json. */
  readonly configJson: Readonly<Record<string, unknown>>;
  readonly storage: WeightStorage;
  readonly kvType: KVType;
  readonly pageSize: number;
  /** Longest sequence asked for, in tokens. */
  readonly context: number;
  readonly memFractionStatic: number;
  readonly deviceMemory?: number | undefined;
  /** Bytes of the adapter's memory that other models take. */
  readonly otherBytes: number;
  readonly trustRemoteCode: boolean;
}

export interface OpenRequest {
  /** Part of the adapter's name; undefined = the platform's best. */
  readonly adapter: string | undefined;
  /** Kernels and shader fragments not to use; the same for all ranks, because their sums must have the same bits. */
  readonly avoid: readonly string[];
}

export interface OpenedRank {
  readonly adapter: AdapterInfo;
  readonly maxBindingBytes: number;
  /** Whether the adapter has subgroup matrices for prompts. */
  readonly matrices: boolean;
}

export interface LoadedRank {
  readonly parameters: number;
  readonly weightBytes: number;
  /** Columns of the widest activation; `tokens` is the size of this rank's slice of the vocabulary. */
  readonly widestRow: number;
  readonly tokens: number;
}

export interface LoadRequest {
  readonly model: ChatModel;
  readonly place: RankPlace;
  readonly shard: Shard;
}

export interface StartRequest {
  /** KV pages of layers with full attention. */
  readonly pages: number;
  /** KV pages of layers with a sliding window. */
  readonly windowPages: number;
  readonly sizes: GroupSizes;
  /** The memory that the group shares; see GroupMemory. */
  readonly buffer: ArrayBufferLike;
  /** Kernel choices of another rank on the same kind of adapter, which are adopted while all others are measured; absent = no autotuning. */
  readonly tuning?: Readonly<Record<string, string>> | undefined;
}

export interface StartedRank {
  /** Kernels that failed the self-test on this adapter; the group cannot run with them. */
  readonly faults: readonly Fault[];
  /** Number of pipelines that passed the self-test. */
  readonly tested: number;
  readonly tuned: readonly TunedKernel[];
}

/** Self-tests passed and kernels chosen, by all ranks together. */
export type RankKernels = Omit<StartedRank, 'faults'>;

/** The table of operations; RankHost has a method of each name. A rank executes them in the order of the calls. */
export const RANK_OPERATIONS = {
  /** Opens an adapter. */
  open: value<OpenRequest, OpenedRank>(),
  /** Measures the bandwidth that bounds decoding, in GB of weights per second. */
  measure: value<void, number>(),
  /** Reads this rank's shard of the weights. */
  load: value<LoadRequest, LoadedRank>(),
  /** Allocates the activations; returns the memory plan, with how many KV pages fit. Throws EngineError('out_of_memory'). */
  reserve: value<StepLimits, MemoryUse>(),
  /** Allocates the KV pages, joins the group and warms up, which tests the kernels and tunes them. */
  start: value<StartRequest, StartedRank>(),
  /** Makes room for logit processing. Throws EngineError('out_of_memory'), after which the rank goes on. */
  reserveProcessing: value<void, void>(),
  /** Executes the step at this index of the group's step places. */
  step: value<number, void>(),
};

export type RankOperations = Methods<typeof RANK_OPERATIONS>;

/** A message to a rank's thread. */
export type RankCall = CallMessage | { readonly type: 'close' };

/** A message from a rank's thread. Replies carry the counters of its device, if that is open. */
export type RankReply = (NewsMessage & { readonly stats: DeviceStats | undefined }) | { readonly type: 'lost'; readonly reason: string };
