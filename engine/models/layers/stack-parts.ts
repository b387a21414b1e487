/** Weights and activations of a decoder stack. */
import type { Tensor } from '../../gpu/tensor.ts';
import type { RopeConfig } from '../../ops/rope.ts';
import type { LinearWeight } from '../../ops/weight.ts';
import type { Attention, AttentionShare, AttentionWorkspace } from './attention.ts';
import type { LatentAttention, LatentWorkspace } from './latent-attention.ts';
import type { LayerInput, LayerInputs, LayerInputsWorkspace } from './layer-inputs.ts';
import type { MlpShare } from './mlp.ts';
import type { LayerKind, LayerShare } from './stack-config.ts';
import type { Vocabulary } from './vocabulary.ts';

/** Weights of a layer. */
export interface Layer<MlpWeights> extends LayerKind {
  readonly share: LayerShare;
  readonly inputNorm: Tensor | undefined;
  /** [C]: what a layer norm adds to its normed rows; undefined where the norm before attention is an RMS norm. */
  readonly inputShift: Tensor | undefined;
  /** Undefined in recurrent layers, and in those with an MLP alone. */
  readonly attention: Attention | undefined;
  /** Multi-head latent attention, in place of the other. */
  readonly latent: LatentAttention | undefined;
  /** Weights of the recurrent block, as Recurrent.load returns them; undefined in layers without. */
  readonly recurrent: unknown;
  /** Index of its KV pages among the layers with pages; a layer with `keysOf` has that layer's index. */
  readonly place: number;
  /** Index of its state among the layers with one. */
  readonly statePlace: number;
  readonly attentionNorm: Tensor | undefined;
  readonly mlpNorm: Tensor | undefined;
  readonly mlpShift: Tensor | undefined;
  /** Undefined in layers without. */
  readonly mlp: MlpWeights | undefined;
  readonly outputNorm: Tensor | undefined;
  readonly input: LayerInput | undefined;
  /** Factor of the layer's output. */
  readonly scale: number;
}

/** Weights of a shard. */
export interface Weights<MlpWeights> extends Vocabulary {
  readonly layers: readonly Layer<MlpWeights>[];
  readonly layerInputs: LayerInputs | undefined;
  readonly cosSin: ReadonlyMap<RopeConfig, Tensor>;
  readonly draftHead: DraftHead<MlpWeights> | undefined;
}

/**
 * Activations, allocated once for the largest batch. The residual stream alternates between two tensors, so that no dispatch reads what it
 * writes.
 */
export interface Workspace<MlpWorkspace> {
  readonly hidden: Tensor; // [T, C]
  readonly middle: Tensor; // [T, C] after attention
  readonly normed: Tensor; // [T, C]
  readonly branch: Tensor | undefined; // [T, C] what comes out of a half that has a norm behind it, or of the block beside attention
  readonly attention: ReadonlyMap<AttentionShare, AttentionWorkspace>;
  readonly latent: ReadonlyMap<AttentionShare, LatentWorkspace>;
  readonly recurrent: unknown;
  readonly mlp: ReadonlyMap<MlpShare, MlpWorkspace>;
  readonly layerInputs: LayerInputsWorkspace | undefined;
  readonly gathered: Tensor; // [B, C]
  readonly last: Tensor; // [B, C] normed
  /**
   * Hidden states after the final norm, in decoders with a draft head: `all` has the kept ones first and then those of this pass,
   * [firstFinal(kept) + T, C]; `own` is the latter, [T, C].
   */
  readonly finals: { readonly all: Tensor; readonly own: Tensor } | undefined;
  readonly logits: Tensor | undefined; // [B, V]
}

/** Weights of a draft head (draft-head.ts). */
export interface DraftHead<MlpWeights> {
  readonly embeddingNorm: Tensor;
  readonly hiddenNorm: Tensor;
  /** The two column halves of `fc` [C, 2 C]: its product with both inputs side by side is the sum of theirs. */
  readonly ofEmbedding: LinearWeight;
  readonly ofHidden: LinearWeight;
  readonly layer: Layer<MlpWeights>;
  readonly norm: Tensor;
}
