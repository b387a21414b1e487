/** The contract between decoders and those who run them: the runner, the scheduler and the ranks of a split model. */
import type { Caps } from '../gpu/caps.ts';
import type { Device } from '../gpu/device.ts';
import type { Recorder } from '../gpu/recorder.ts';
import type { Tensor } from '../gpu/tensor.ts';
import { createKVCache } from '../ops/kv.ts';
import type { KVCache, KVHeads, KVShape } from '../ops/kv.ts';
import { attentionTileRows } from '../ops/paged-attention.ts';
import { createStates } from '../ops/states.ts';
import type { StateShape } from '../ops/states.ts';
import type { Range } from '../util/math.ts';
import type { StorageRule, WeightRules } from '../weights/storage.ts';
import type { WeightLoader } from './weight-loader.ts';
import type { ForwardInput } from './forward-input.ts';
import type { Shard } from './shard.ts';

/** Sizes of a decoder that the runner and the scheduler need. */
export interface DecoderShape {
  readonly layers: number;
  /** Key/value heads of every layer that has KV pages. */
  readonly pages: readonly KVHeads[];
  /** State of the recurrent layers; absent in models without such layers. */
  readonly state?: StateShape | undefined;
  readonly heads: number;
  readonly kvHeads: number;
  readonly headDim: number;
  /** Channels of all rotary tables together. */
  readonly rotaryChannels: number;
  /** Channels of the hidden state, C. */
  readonly hidden: number;
  readonly vocabulary: number;
  /** Context length that the model was trained for, in positions. */
  readonly maxPositions: number;
  /** Columns of the widest activation in a workspace. */
  readonly widestRow: number;
  readonly eosTokenIds: readonly number[];
}

/** A loaded decoder or one rank's shard of it: weights on the device, stateless between calls. */
export interface Decoder {
  /** Sizes, with the layers and heads of the shard. */
  readonly shape: DecoderShape;
  /** Range of token ids that its logits cover: a slice of the vocabulary on a tensor-parallel shard, empty on a shard without the head. */
  readonly tokens: Range;
  readonly parameters: number;
  /**
   * Allocates activations for at most `rows` rows of a batch, `logitRows` of them with logits; `kept` is the number of hidden states that a
   * decoder with a draft head keeps from step to step.
   */
  createWorkspace(device: Device, rows: number, logitRows: number, kept?: number): DecoderWorkspace;
  /** Writes into new, empty pages what storing keys needs to know of the weights (KVLayer.plan); absent = nothing. */
  prepareKV?(device: Device, kv: KVCache): Promise<void>;
}

/** Rows of one sequence per prefill tile: the most that attention of every layer can take. */
export function prefillTileRows(caps: Caps, { heads, pages }: Pick<DecoderShape, 'heads' | 'pages'>): number {
  return Math.min(...pages.map((layer) => attentionTileRows(caps, heads, layer)));
}

/** Most pages or slots, and how many are allocated at first; default all. */
export interface Room {
  readonly limit: number;
  readonly first?: number;
}

/** Allocates a decoder's KV cache and recurrent states, ready for its first step. */
export async function createDecoderKV(
  device: Device,
  decoder: Decoder,
  shape: KVShape,
  pages: Room & { readonly windows?: Room },
  slots: Room = { limit: 1 },
): Promise<KVCache> {
  const { state } = decoder.shape;
  const states = state && createStates(device, state, slots.limit, slots.first);
  const { limit, first, windows } = pages;
  const ofWindows = windows && { limit: windows.limit, pages: windows.first ?? windows.limit };
  const kv = { ...createKVCache(device, shape, limit, first, ofWindows), ...(states && { states }) };
  await decoder.prepareKV?.(device, kv);
  return kv;
}

/** A part of the forward pass that a rank computes without the others. */
export interface Stage {
  record(rec: Recorder): void;
  /**
   * Partial sum [rows, C] that this stage leaves. The sum over the tensor-parallel ranks must replace it before the next stage; absent =
   * none.
   */
  readonly partial?: { readonly tensor: Tensor; readonly rows: number };
}

export interface DecoderWorkspace {
  /** [T, C]: the hidden state that pipeline stages hand over, read before the shard's first layer and written by its last. */
  readonly hidden: Tensor;
  /** [logitRows, tokens] f32; absent on a shard without the head. */
  readonly logits: Tensor | undefined;
  /** The forward pass, cut where partial sums of tensor-parallel ranks are added. */
  stages(input: ForwardInput, kv: KVCache): readonly Stage[];
  /** Appends the whole forward pass of an unsplit decoder; returns the logits. */
  forward(rec: Recorder, input: ForwardInput, kv: KVCache): Tensor;
  /** Appends a pass of the draft head and returns its logits, the first `rows` rows of `logits`; absent = the decoder has none. */
  draft?(rec: Recorder, input: DraftInput, kv: KVCache): Tensor;
}

/** Input of a draft head's pass: one row, a decode in the head's own layer, for each sequence that is guessed for. */
export interface DraftInput {
  /** The rows; a row's token is the one that follows the position of its hidden state. */
  readonly batch: ForwardInput;
  /** [rows] u32: indices of kept hidden states; undefined = the rows continue from the hidden states of the previous guess. */
  readonly hidden: Tensor | undefined;
}

/** Definition of a decoder family, found by config.json's `model_type`. */
export interface DecoderDefinition {
  /** Reads and checks config.json; throws EngineError('invalid_model' | 'unsupported') naming the field. */
  parseConfig(json: Readonly<Record<string, unknown>>): DecoderShape;
  /** Allocates the activations of the whole model, so that they can be measured; absent = their size is estimated from the shape. */
  workspace?(device: Device, json: Readonly<Record<string, unknown>>, rows: number, logitRows: number, kept?: number): void;
  /** Throws EngineError('unsupported') where the model cannot be split into this shard; absent = loading finds out. */
  expectShard?(json: Readonly<Record<string, unknown>>, shard: Shard): void;
  /** Storage types of matrices that do not take the type that is asked for; absent = there are none. */
  readonly storage?: StorageRule;
  /** Whether a checkpoint's tensor of this name belongs to the model that config.json describes; absent = all do. */
  readonly takes?: (name: string, json: Readonly<Record<string, unknown>>) => boolean;
  /** The same architecture with the draft head of its published checkpoints; absent = none is known. */
  readonly withHead?: DecoderDefinition;
  /** Loads every weight, or those of a shard. Rotary tables get `context` positions. */
  load(loader: WeightLoader, json: Readonly<Record<string, unknown>>, context: number, shard?: Shard): Promise<Decoder>;
}

/** Definition of a family made by decoderStack. */
export type StackDefinition = DecoderDefinition & Required<Pick<DecoderDefinition, 'expectShard' | 'storage' | 'workspace'>>;

/** What a definition says of a checkpoint's tensors, for a config.json. */
export function weightRules({ takes, storage }: DecoderDefinition, json: Readonly<Record<string, unknown>>): WeightRules {
  return { ...(storage && { storage }), ...(takes && { takes: (name: string) => takes(name, json) }) };
}

/** Bytes of the activations for `rows` rows, `logitRows` of them with logits, and for `kept` hidden states of a draft head. */
export function workspaceBytes(
  definition: DecoderDefinition,
  device: Device,
  json: Readonly<Record<string, unknown>>,
  { rows, logitRows, kept }: { readonly rows: number; readonly logitRows: number; readonly kept: number },
): number {
  const { widestRow, hidden, vocabulary } = definition.parseConfig(json);
  if (definition.workspace) return device.measure(() => definition.workspace!(device, json, rows, logitRows, kept));
  return 4 * (rows * (2 * widestRow + 4 * hidden) + logitRows * (vocabulary + 2 * hidden));
}
