/** What a decoder is to the runner, the scheduler and the ranks of a split model. */
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
import type { StorageRule } from '../weights/storage.ts';
import type { WeightLoader } from './weight-loader.ts';
import type { ForwardInput } from './forward-input.ts';
import type { Shard } from './shard.ts';

/** What the runner and the scheduler need to know of a decoder. */
export interface DecoderShape {
  readonly layers: number;
  /** The heads of every layer with pages of keys and values. */
  readonly pages: readonly KVHeads[];
  /** What recurrent layers keep of a sequence beside its pages; absent = there are none. */
  readonly state?: StateShape | undefined;
  readonly heads: number;
  readonly kvHeads: number;
  readonly headDim: number;
  /** Of the tables of all rotary embeddings. */
  readonly rotaryChannels: number;
  /** Channels of the hidden state. */
  readonly hidden: number;
  readonly vocabulary: number;
  /** Positions the model was made for. */
  readonly maxPositions: number;
  /** Columns of the widest activation a row has in a workspace. */
  readonly widestRow: number;
  readonly eosTokenIds: readonly number[];
}

/** A loaded decoder or one rank's shard of it: weights on the device, stateless between calls. */
export interface Decoder {
  /** Layers and heads are those of the shard. */
  readonly shape: DecoderShape;
  /** Tokens its logits are of: a slice of the vocabulary, empty on a shard without the head. */
  readonly tokens: Range;
  readonly parameters: number;
  /** Activation tensors for at most `rows` rows of a batch and `logitRows` sampled rows; with a head that guesses, for `kept` hidden states from step to step. */
  createWorkspace(device: Device, rows: number, logitRows: number, kept?: number): DecoderWorkspace;
  /** Tells new pages, before anything is stored, what they should know of the weights (KVLayer.plan); absent = nothing. */
  prepareKV?(device: Device, kv: KVCache): Promise<void>;
}

/** Rows of one sequence that a tile of a prefill holds: as many as every layer can take. */
export function prefillTileRows(caps: Caps, { heads, pages }: Pick<DecoderShape, 'heads' | 'pages'>): number {
  return Math.min(...pages.map(({ kvHeads, headDim }) => attentionTileRows(caps, heads, kvHeads, headDim)));
}

/** How many pages or slots there may be, and how many are made at first; default all. */
export interface Room {
  readonly limit: number;
  readonly first?: number;
}

/** Pages for a decoder's keys and values, and slots for its states where it has any, ready for its first step. */
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

/** What a rank computes without the others. */
export interface Stage {
  record(rec: Recorder): void;
  /** Rows of [T, C]: this rank's part of a sum over the tensor-parallel ranks, which must take its place before the next stage; absent = none. */
  readonly partial?: { readonly tensor: Tensor; readonly rows: number };
}

export interface DecoderWorkspace {
  /** [T, C]: what the layers before a shard hand over, and what it hands on. */
  readonly hidden: Tensor;
  /** [logitRows, tokens]; absent on a shard without the head. */
  readonly logits: Tensor | undefined;
  /** The forward pass, cut where the parts of tensor-parallel ranks are added. */
  stages(input: ForwardInput, kv: KVCache): readonly Stage[];
  /** Appends all stages: the forward pass of a decoder that is not split; returns the logits. */
  forward(rec: Recorder, input: ForwardInput, kv: KVCache): Tensor;
  /** Appends a pass of the head that guesses, where the decoder has one; returns its logits, a row each of the first rows of `logits`. */
  guess?(rec: Recorder, input: GuessInput, kv: KVCache): Tensor;
}

/** One guess for each of some sequences: rows that are decodes of the head's own layer. */
export interface GuessInput {
  /** A row's token is the one behind the position of its hidden state. */
  readonly batch: ForwardInput;
  /** [rows] u32: which kept hidden states; absent = those that the guess before has left. */
  readonly hidden: Tensor | undefined;
}

/** One architecture of config.json's `model_type`. */
export interface DecoderDefinition {
  /** Reads and checks config.json; throws EngineError('invalid_model' | 'unsupported') naming the field. */
  parseConfig(json: Readonly<Record<string, unknown>>): DecoderShape;
  /** Makes the activation tensors of the whole model, to be measured; absent = they are guessed from the shape. */
  workspace?(device: Device, json: Readonly<Record<string, unknown>>, rows: number, logitRows: number, kept?: number): void;
  /** Throws EngineError('unsupported') where the model cannot be cut like this; absent = loading it tells. */
  expectShard?(json: Readonly<Record<string, unknown>>, shard: Shard): void;
  /** How matrices are stored that are not stored as they are asked for; absent = there are none. */
  readonly storage?: StorageRule;
  /** Whether a tensor of a checkpoint is of this model, by its name; absent = all are. */
  readonly takes?: (name: string) => boolean;
  /** The same architecture with the head that published checkpoints have to guess tokens; absent = none is known. */
  readonly withHead?: DecoderDefinition;
  /** Takes every weight, or those of a shard, from the loader; `context` positions of rotary tables are made. */
  load(loader: WeightLoader, json: Readonly<Record<string, unknown>>, context: number, shard?: Shard): Promise<Decoder>;
}

/** What every stack of layers defines. */
export type StackDefinition = DecoderDefinition & Required<Pick<DecoderDefinition, 'expectShard' | 'storage' | 'workspace'>>;

/** Bytes of the activations of `rows` rows, `logitRows` of them with logits, and of `kept` hidden states. */
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
