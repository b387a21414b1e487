/** Weights and activations of a decoder stack. */
import type { Tensor } from '../../gpu/tensor.ts';
import type { RopeConfig } from '../../ops/rope.ts';
import type { LinearWeight } from '../../ops/weight.ts';
import type { Attention, AttentionShare, AttentionWorkspace } from './attention.ts';
import type { LayerInput, LayerInputs, LayerInputsWorkspace } from './layer-inputs.ts';
import type { MlpShare } from './mlp.ts';
import type { LayerKind, LayerShare } from './stack-config.ts';
import type { Vocabulary } from './vocabulary.ts';

/** Weights of a layer. */
export interface Layer<MlpWeights> extends LayerKind {
  readonly share: LayerShare;
  readonly inputNorm: Tensor | undefined;
  /** Unless it is recurrent. */
  readonly attention: Attention | undefined;
  /** Weights of a recurrent layer. */
  readonly recurrent: unknown;
  /** Among the layers with pages, or among those with a state; where it reads another's pages, of that one. */
  readonly place: number;
  readonly attentionNorm: Tensor | undefined;
  readonly mlpNorm: Tensor | undefined;
  readonly mlp: MlpWeights;
  readonly outputNorm: Tensor | undefined;
  readonly input: LayerInput | undefined;
  /** What its result is multiplied with. */
  readonly scale: number;
}

/** Weights of a shard. */
export interface Weights<MlpWeights> extends Vocabulary {
  readonly layers: readonly Layer<MlpWeights>[];
  readonly layerInputs: LayerInputs | undefined;
  readonly cosSin: ReadonlyMap<RopeConfig, Tensor>;
  readonly draftHead: DraftHead<MlpWeights> | undefined;
}

/** Activations, made once for the largest batch. The residual stream alternates between two tensors: no dispatch reads what it writes. */
export interface Workspace<MlpWorkspace> {
  readonly hidden: Tensor; // [T, C]
  readonly middle: Tensor; // [T, C] after attention
  readonly normed: Tensor; // [T, C]
  readonly branch: Tensor | undefined; // [T, C] what comes out of a half that has a norm behind it
  readonly attention: ReadonlyMap<AttentionShare, AttentionWorkspace>;
  readonly recurrent: unknown;
  readonly mlp: ReadonlyMap<MlpShare, MlpWorkspace>;
  readonly layerInputs: LayerInputsWorkspace | undefined;
  readonly gathered: Tensor; // [B, C]
  readonly last: Tensor; // [B, C] normed
  /** Of a decoder with a head that guesses: behind the last norm the rows that are kept, and behind them those of this pass, [kept + T, C] and [T, C]. */
  readonly finals: { readonly all: Tensor; readonly own: Tensor } | undefined;
  readonly logits: Tensor | undefined; // [B, V]
}

/** Weights of a head that guesses (draft-head.ts). */
export interface DraftHead<MlpWeights> {
  readonly embeddingNorm: Tensor;
  readonly hiddenNorm: Tensor;
  /** The halves of `fc` [C, 2 C]: the sum of their products is that of both inputs beside each other. */
  readonly ofEmbedding: LinearWeight;
  readonly ofHidden: LinearWeight;
  readonly layer: Layer<MlpWeights>;
  readonly norm: Tensor;
}
