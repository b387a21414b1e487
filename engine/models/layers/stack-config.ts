/** What a decoder stack is made of, and the part of it that a rank holds. */
import { EngineError } from '../../errors.ts';
import type { Remedy } from '../../errors.ts';
import type { RopeConfig } from '../../ops/rope.ts';
import type { Range } from '../../util/math.ts';
import type { DecoderShape } from '../decoder.ts';
import { shareOf } from '../shard.ts';
import type { Shard } from '../shard.ts';
import { attentionShare } from './attention.ts';
import type { AttentionConfig, AttentionShare } from './attention.ts';
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
  /** Of every layer, where they are not all alike. */
  readonly kinds?: readonly LayerKind[] | undefined;
  /** What recurrent layers have in the place of attention. */
  readonly recurrent?: Recurrent | undefined;
  /** What embeddings are multiplied with; default 1. */
  readonly embeddingScale?: number | undefined;
  /** What logits are multiplied with; default 1. */
  readonly logitScale?: number | undefined;
  /** Logits are cap * tanh(logits / cap); absent = as they are. */
  readonly logitSoftCap?: number | undefined;
  /** Each layer ends in a multiplication with a number of its own, `layer_scalar`. */
  readonly hasLayerScalars?: boolean | undefined;
  /** It is loaded with the head that guesses (draft-head.ts), whose layer is as the first with pages. */
  readonly hasDraftHead?: boolean | undefined;
  /** What layers are told of a row's token beside the residual stream. */
  readonly layerInputs?: Pick<LayerInputsConfig, 'columns' | 'activation'> | undefined;
}

/** What follows of the layers. */
type DerivedShape = 'widestRow' | 'pages' | 'state' | 'rotaryChannels';

/** What one layer has of its own. */
export interface LayerKind {
  readonly rope: RopeConfig;
  /** Positions that a row sees, the last of which is its own; absent = all. */
  readonly window?: number | undefined;
  /** It has no attention and no pages, but a state. */
  readonly isRecurrent?: boolean | undefined;
  /** Sizes that are not the model's. */
  readonly kvHeads?: number;
  readonly headDim?: number;
  readonly intermediate?: number;
  /** Its values are its keys before norm and rotation. */
  readonly valuesAreKeys?: boolean | undefined;
  /** Number of the layer whose pages it reads: it has no keys, values and pages of its own. */
  readonly keysOf?: number | undefined;
}

/** Where a layer has norms, by the checkpoint's names. What comes out of a half with one behind it is normed before it is added to the residual stream. */
export interface LayerNorms {
  readonly beforeAttention?: string;
  readonly afterAttention?: string;
  readonly beforeMlp?: string;
  readonly afterMlp?: string;
}

export const PRE_NORMS: LayerNorms = { beforeAttention: 'input_layernorm', beforeMlp: 'post_attention_layernorm' };

/** What a family is: how its config.json reads, its MLP, and its norms where they are not before the halves only. */
export interface DecoderFamily<MlpWeights, MlpWorkspace> {
  /** Throws EngineError('invalid_model' | 'unsupported') naming the field. */
  parseConfig(json: Readonly<Record<string, unknown>>): DecoderStackConfig;
  readonly mlp: MlpKind<MlpWeights, MlpWorkspace>;
  readonly norms?: LayerNorms;
  /** It reads what `per_layer_config` says of single layers. */
  readonly readsLayers?: boolean;
}

/** What a rank has of a layer, where it has it. */
export interface LayerShare {
  readonly attention: AttentionShare;
  readonly mlp: MlpShare;
}

/** What a shard holds of the model. */
export interface Part {
  readonly shard: Shard;
  /** The model's own sizes. */
  readonly config: DecoderStackConfig;
  /** Of each of the model's layers; alike layers have the same objects. */
  readonly layers: readonly LayerShare[];
  readonly tokens: Range;
  readonly isFirst: boolean;
  readonly isLast: boolean;
}

/** What a layer has of its own. */
export function kindOf({ rope, kinds }: Pick<DecoderStackConfig, 'rope' | 'kinds'>, layer: number): LayerKind {
  return kinds?.[layer] ?? { rope };
}

/** The sizes of a layer: its own, or else the model's. */
export function layerConfig(config: DecoderStackConfig, layer: number): DecoderStackConfig & LayerKind {
  return { ...config, ...kindOf(config, layer) };
}

/** Whether a layer keeps keys and values. */
export function hasPages({ isRecurrent = false, keysOf }: LayerKind): boolean {
  return !isRecurrent && keysOf === undefined;
}

/** Of a model whose layers are told of tokens once more. */
export function layerInputsConfig({ layerInputs, layers, hidden, vocabulary, eps }: DecoderStackConfig): LayerInputsConfig | undefined {
  return layerInputs && { ...layerInputs, layers, hidden, vocabulary, eps };
}

/** Throws EngineError('unsupported') where the model cannot be cut like this. */
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

/** Number of the layer that the layer of a head that guesses is like. */
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
  // A norm stands behind the MLP and behind the experts, for which a rank would need what the others make of them.
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
