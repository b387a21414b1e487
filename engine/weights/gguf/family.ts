/** What has to be said of a family of GGUF files. */
import type { Json } from '../../util/json.ts';
import type { Metadata } from './metadata.ts';
import type { RopeFactors } from './rope.ts';

/** What llama.cpp's converter makes of a family. */
export interface Architecture {
  /** config.json's `model_type`. */
  readonly modelType: string;
  /** Rows of q and k stand as llama.cpp's rotation wants them: pairs of channels beside each other. */
  readonly permuted: boolean;
  /** config.json's `hidden_act`. */
  readonly activation: string;
  /** Names of a layer's parts that are not as in PARTS. */
  readonly parts?: ReadonlyMap<string, string>;
  /** Names of a layer's tensors that are not a part's weight or bias. */
  readonly tensors?: ReadonlyMap<string, string>;
  /** Names of the tensors of a head that guesses, in the layers behind the model's; absent = such layers are left out. */
  readonly head?: ReadonlyMap<string, string>;
  /** What the values of a layer's tensor stand for, where that is not themselves and not normOffset's. */
  readonly values?: ReadonlyMap<string, (stored: number) => number>;
  /** What the converter added to the weights of norms. */
  readonly normOffset?: number;
  /** Settings that only this family has, and what they are called in config.json; others must be neutral. */
  readonly settings?: (metadata: Metadata, key: (rest: string) => string, sizes: Sizes) => Json;
  /** Layers differ in heads of keys and columns of the MLP, and `settings` says how. */
  readonly byLayer?: boolean;
  /** Keys of NEUTRAL that `settings` reads. */
  readonly reads?: readonly string[];
}

/** Of a model, for its settings. */
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
