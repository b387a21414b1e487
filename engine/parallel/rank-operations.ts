/** What a rank of a split model is asked, in its own thread or in the coordinator's. */
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

/** A model that chats, and how it is stored; plain data, the same for all ranks of one that is split. */
export interface ChatModel {
  readonly id: string;
  /** The model folder's, which every rank opens for itself. */
  readonly path: string;
  /** Its config.json. */
  readonly configJson: Readonly<Record<string, unknown>>;
  readonly storage: WeightStorage;
  readonly kvType: KVType;
  readonly pageSize: number;
  /** Longest sequence asked for, in tokens. */
  readonly context: number;
  readonly memFractionStatic: number;
  readonly deviceMemory?: number | undefined;
  /** Bytes that other models take of the adapter's memory. */
  readonly otherBytes: number;
  readonly trustRemoteCode: boolean;
}

export interface OpenRequest {
  /** A part of an adapter's name; absent = the platform's best. */
  readonly adapter: string | undefined;
  /** Kernels and fragments to do without: the same for all ranks, whose sums must have the same bits. */
  readonly avoid: readonly string[];
}

export interface OpenedRank {
  readonly adapter: AdapterInfo;
  readonly maxBindingBytes: number;
  /** It has subgroup matrices for prompts. */
  readonly matrices: boolean;
}

export interface LoadedRank {
  readonly parameters: number;
  readonly weightBytes: number;
  /** Columns of the widest activation, and tokens whose logits this rank has. */
  readonly widestRow: number;
  readonly tokens: number;
}

export interface LoadRequest {
  readonly model: ChatModel;
  readonly place: RankPlace;
  readonly shard: Shard;
}

export interface StartRequest {
  /** Pages of keys and values. */
  readonly pages: number;
  /** Of layers that see a window only. */
  readonly windowPages: number;
  readonly sizes: GroupSizes;
  /** The group's memory. */
  readonly buffer: ArrayBufferLike;
  /** Measures kernels, but for those that a rank on an adapter of this kind has chosen; absent = nothing is measured. */
  readonly tuning?: Readonly<Record<string, string>> | undefined;
}

export interface StartedRank {
  /** Kernels that fail on its adapter: the group cannot run with them. */
  readonly faults: readonly Fault[];
  /** Pipelines that its self-test found right. */
  readonly tested: number;
  readonly tuned: readonly TunedKernel[];
}

/** What all ranks together tested and chose. */
export type RankKernels = Omit<StartedRank, 'faults'>;

/** The operations, a row each; RankHost has a method of each name. They are done in the order they are asked for. */
export const RANK_OPERATIONS = {
  /** Takes an adapter. */
  open: value<OpenRequest, OpenedRank>(),
  /** What bounds a token: GB of weights a second. */
  measure: value<void, number>(),
  /** Reads this rank's shard of the weights. */
  load: value<LoadRequest, LoadedRank>(),
  /** Makes the activations; gives how the memory divides and how many pages it leaves. Throws EngineError('out_of_memory'). */
  reserve: value<Pick<StepLimits, 'maxRunning' | 'prefillChunk' | 'draftRows' | 'promptsApart'>, MemoryUse>(),
  /** Makes the pages, joins the group and warms up: tests its kernels and chooses among them. */
  start: value<StartRequest, StartedRank>(),
  /** Executes the step that lies at a place of the group's memory. */
  step: value<number, void>(),
};

export type RankOperations = Methods<typeof RANK_OPERATIONS>;

/** To a rank's thread. */
export type RankCall = CallMessage | { readonly type: 'close' };

/** From it. News come with the counters of its device, where that is open. */
export type RankReply = (NewsMessage & { readonly stats: DeviceStats | undefined }) | { readonly type: 'lost'; readonly reason: string };
