/** Configuration of a decoder stack, and the part of it that a rank holds. */
import { EngineError } from '../../errors.ts';
import type { Remedy } from '../../errors.ts';
import type { RopeConfig } from '../../ops/rope.ts';
import type { Range } from '../../util/math.ts';
import type { DecoderShape } from '../decoder.ts';
import { shareOf } from '../shard.ts';
import type { Shard } from '../shard.ts';
import { attentionShare } from './attention.ts';
import type { AttentionConfig, AttentionShare } from './attention.ts';
import type { LatentConfig } from './latent-attention.ts';
import type { LayerInputsConfig } from './layer-inputs.ts';
import { mlpUnit } from './mlp.ts';
import type { MlpConfig, MlpKind, MlpShare } from './mlp.ts';
import type { Recurrent } from './recurrent.ts';
import { tokenShare } from './vocabulary.ts';
import type { VocabularyConfig } from './vocabulary.ts';

export interface DecoderStackConfig extends Omit<DecoderShape, DerivedShape>, AttentionConfig, MlpConfig, VocabularyConfig {
  readonly hidden: number;
  readonly heads: number;
  readonly kvHeads: number;
  readonly headDim: number;
  readonly vocabulary: number;
  readonly rope: RopeConfig;
  /** The kind of each layer; absent = all layers are alike. */
  readonly kinds?: readonly LayerKind[] | undefined;
  /** The block that recurrent layers have instead of attention; absent = no layer is recurrent. */
  readonly recurrent?: Recurrent | undefined;
  /** Attention is multi-head latent attention (latent-attention.ts): one key/value head, of the latent and the rotated channels; absent = it is not. */
  readonly latent?: LatentConfig | undefined;
  /** Attention and the MLP read the same rows, normed once or, 'apart', each by a norm of its own, and both are added to the residual stream. */
  readonly isParallel?: boolean | 'apart' | undefined;
  /** The checkpoint's rotary embedding pairs channels 2d and 2d + 1 of a head (paired-checkpoint.ts). */
  readonly isInterleaved?: boolean | undefined;
  /** Factor of the token embeddings; default 1. */
  readonly embeddingScale?: number | undefined;
  /** Factor of the logits; default 1. */
  readonly logitScale?: number | undefined;
  /** Soft cap: logits become cap * tanh(logits / cap); absent = none. */
  readonly logitSoftCap?: number | undefined;
  /** Each layer's output is multiplied by the checkpoint's `layer_scalar`. */
  readonly hasLayerScalars?: boolean | undefined;
  /** Load the draft head too (draft-head.ts), whose layer is of the same kind as the first with KV pages. */
  readonly hasDraftHead?: boolean | undefined;
  /** Per-layer embeddings (layer-inputs.ts); absent = none. */
  readonly layerInputs?: Pick<LayerInputsConfig, 'columns' | 'activation'> | undefined;
}

/** Fields of DecoderShape that are derived from the layers. */
type DerivedShape = 'widestRow' | 'pages' | 'state' | 'rotaryChannels';

/** In what a layer may differ from the model's other layers. */
export interface LayerKind {
  readonly rope: RopeConfig;
  /** Sliding window: positions that a row attends to, its own included; absent = full attention. */
  readonly window?: number | undefined;
  /** The layer has a recurrent state instead of attention and KV pages. */
  readonly isRecurrent?: boolean | undefined;
  /** Sizes that differ from the model's. */
  readonly kvHeads?: number;
  readonly headDim?: number;
  readonly intermediate?: number;
  /** Its values are its keys before norm and rotary embedding. */
  readonly valuesAreKeys?: boolean | undefined;
  /** Index of the layer whose KV pages it reads; it computes no keys and values itself. */
  readonly keysOf?: number | undefined;
  /** The layer has the recurrent block beside its attention: both read the same normed rows, and both are added. */
  readonly isHybrid?: boolean | undefined;
  /** The half that the layer has, attention or what is in its place, or the MLP; absent = it has both. */
  readonly only?: 'attention' | 'mlp' | undefined;
}

/**
 * Names, in the checkpoint, of the norms that a layer has. The output of a half with a norm after it is normed before it is added to the
 * residual stream.
 */
export interface LayerNorms {
  readonly beforeAttention?: string;
  readonly afterAttention?: string;
  readonly beforeMlp?: string;
  readonly afterMlp?: string;
}

export const PRE_NORMS: LayerNorms = { beforeAttention: 'input_layernorm', beforeMlp: 'post_attention_layernorm' };

/** A family of decoder stacks: its reading of config.json, its MLP, and its norms if they are not PRE_NORMS. */
export interface DecoderFamily<MlpWeights, MlpWorkspace> {
  /** Throws EngineError('invalid_model' | 'unsupported') naming the field. */
  parseConfig(json: Readonly<Record<string, unknown>>): DecoderStackConfig;
  readonly mlp: MlpKind<MlpWeights, MlpWorkspace>;
  readonly norms?: LayerNorms;
  /** `parseConfig` reads the field `per_layer_config`; otherwise a file that has it is refused. */
  readonly readsLayers?: boolean;
  /** Names that config.json files give the MLP's activation besides its own; `parseConfig` reads those of other functions. */
  readonly activationNames?: readonly string[];
  /** The field of config.json with that name; default `hidden_activation` where a file has it, else `hidden_act`. */
  readonly activationField?: string;
}

/** A rank's share of a layer that it holds. */
export interface LayerShare {
  readonly attention: AttentionShare;
  readonly mlp: MlpShare;
}

/** The part of a model that a shard holds. */
export interface Part {
  readonly shard: Shard;
  /** Sizes of the whole model. */
  readonly config: DecoderStackConfig;
  /** A rank's share of each of the model's layers; layers with equal shares have the same objects. */
  readonly layers: readonly LayerShare[];
  readonly tokens: Range;
  readonly isFirst: boolean;
  readonly isLast: boolean;
}

/** The kind of a layer. */
export function kindOf({ rope, kinds }: Pick<DecoderStackConfig, 'rope' | 'kinds'>, layer: number): LayerKind {
  return kinds?.[layer] ?? { rope };
}

/** The config with the layer's own sizes in place of the model's. */
export function layerConfig(config: DecoderStackConfig, layer: number): DecoderStackConfig & LayerKind {
  return { ...config, ...kindOf(config, layer) };
}

/** Whether a layer has KV pages of its own. */
export function hasPages({ isRecurrent = false, keysOf, only }: LayerKind): boolean {
  return !isRecurrent && keysOf === undefined && only !== 'mlp';
}

/** Whether a layer has a recurrent state. */
export function hasState({ isRecurrent = false, isHybrid = false }: LayerKind): boolean {
  return isRecurrent || isHybrid;
}

/** The config of per-layer embeddings; undefined in models without them. */
export function layerInputsConfig({ layerInputs, layers, hidden, vocabulary, eps }: DecoderStackConfig): LayerInputsConfig | undefined {
  return layerInputs && { ...layerInputs, layers, hidden, vocabulary, eps };
}

/** The part of a model that `shard` holds; throws EngineError('unsupported') where the model cannot be split like this. */
export function partOf(config: DecoderStackConfig, shard: Shard): Part {
  const { layers, vocabulary } = config;
  const isFirst = shard.layers.from === 0;
  const isLast = shard.layers.to === layers;
  refuseCuts(config, shard, isFirst && isLast);
  const attentions = new Map<string, AttentionShare>();
  const mlps = new Map<number, MlpShare>();
  return {
    shard,
    config,
    layers: Array.from({ length: layers }, (_, layer) => {
      const own = layerConfig(config, layer);
      return {
        attention: remembered(attentions, `${own.kvHeads} ${own.headDim} ${hasPages(own)}`, () => attentionShare(own, shard)),
        mlp: remembered(mlps, own.intermediate, () => mlpShare(own, shard)),
      };
    }),
    tokens: tokenShare(vocabulary, shard),
    isFirst,
    isLast,
  };
}

/** Index of the layer whose kind the draft head's layer has. */
export function likeDraftHead({ kinds = [] }: DecoderStackConfig): number {
  return Math.max(0, kinds.findIndex(hasPages));
}

function refuseCuts({ kinds = [], layerInputs, experts, hasDraftHead }: DecoderStackConfig, { ranks }: Shard, hasAllLayers: boolean): void {
  const refuse = (what: string, remedies: readonly Remedy[] = []): never => {
    throw new EngineError('unsupported', `${what} cannot be split over several adapters`, { remedies });
  };
  const isSplit = ranks > 1 || !hasAllLayers;
  if (isSplit && hasDraftHead) refuse('a model with a head that guesses');
  if (isSplit && layerInputs) refuse('a model with embeddings for every layer');
  if (isSplit && kinds.some(({ keysOf }) => keysOf !== undefined)) refuse('a model with layers that read the keys of others');
  // A rank with an odd number of halves would leave the residual stream where the next rank does not look for it.
  if (isSplit && kinds.some(({ only }) => only !== undefined)) refuse('a model with layers of one half');
  // Norms follow the MLP and the experts, before the sum over ranks: a rank would need the other ranks' outputs for them.
  const layers: Remedy = { does: 'split its layers instead', settings: [{ name: 'ppSize', value: ranks }] };
  if (ranks > 1 && experts?.besideMlp) refuse('heads and columns of a model with experts beside an MLP', [layers]);
}

function remembered<Key, Value>(known: Map<Key, Value>, key: Key, make: () => Value): Value {
  const value = known.get(key) ?? make();
  known.set(key, value);
  return value;
}

function mlpShare({ intermediate, experts }: MlpConfig, shard: Shard): MlpShare {
  return {
    columns: shareOf('MLP columns', intermediate, mlpUnit(intermediate, shard.ranks), shard),
    experts: experts ? shareOf('experts', experts.count, 1, shard) : { from: 0, to: 0 },
  };
}
