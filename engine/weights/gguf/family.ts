/** The description of a family of GGUF files. */
import type { Json } from '../../util/json.ts';
import type { Metadata } from './metadata.ts';
import type { RopeFactors } from './rope.ts';

/** How llama.cpp's converter maps a family's tensors and settings. */
export interface Architecture {
  /** config.json's `model_type`. */
  readonly modelType: string;
  /** Further types that `settings` may give. */
  readonly otherTypes?: readonly string[];
  /** Rows of q and k are permuted for llama.cpp's rotary embedding: the channels of a pair are adjacent. */
  readonly permuted: boolean;
  /** config.json's `hidden_act`. */
  readonly activation: string;
  /** The field of config.json for the eps of layer norms; absent = norms are RMS norms. */
  readonly layerNormEps?: string;
  /** Names of a layer's parts that differ from PARTS. */
  readonly parts?: ReadonlyMap<string, string>;
  /** Names of a layer's tensors that are not the weight or bias of a part. */
  readonly tensors?: ReadonlyMap<string, string>;
  /** Names of the draft head's tensors, in the layers after the model's; absent = such layers are left out. */
  readonly head?: ReadonlyMap<string, string>;
  /** Functions from a stored value to the tensor's value, by tensor of a layer; norms with normOffset need none. */
  readonly values?: ReadonlyMap<string, (stored: number) => number>;
  /** Offset that the converter added to the weights of norms. */
  readonly normOffset?: number;
  /** Fields of config.json that only this family has, from its metadata. Other settings of NEUTRAL must be neutral. */
  readonly settings?: (metadata: Metadata, key: (rest: string) => string, sizes: Sizes) => Json;
  /** Layers differ in key/value heads and MLP columns, which `settings` handles. */
  readonly byLayer?: boolean;
  /** Attention is multi-head latent attention, whose sizes of keys and values `settings` reads. */
  readonly latent?: boolean;
  /** Keys of NEUTRAL that `settings` reads. */
  readonly reads?: readonly string[];
}

/** A model's sizes and tensors, for `settings`. */
export interface Sizes {
  readonly layers: number;
  readonly hidden: number;
  readonly heads: number;
  readonly headDim: number;
  readonly vocabulary: number;
  readonly ropeFactors: RopeFactors | undefined;
  /** Whether the file has a tensor. */
  has(tensor: string): boolean;
  /** Rows of a tensor; undefined where the file does not have it. */
  rowsOf(tensor: string): number | undefined;
}
