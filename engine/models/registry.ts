import { EngineError } from '../errors.ts';
import type { Device } from '../gpu/device.ts';
import type { Recorder } from '../gpu/recorder.ts';
import type { Tensor } from '../gpu/tensor.ts';
import type { KVCache } from '../ops/kv.ts';
import type { WeightLoader } from '../weights/weight-loader.ts';
import type { ForwardInput } from './forward-input.ts';
import { LLAMA } from './llama.ts';

/** What the runner and the scheduler need to know of a decoder. */
export interface DecoderShape {
  readonly layers: number;
  readonly heads: number;
  readonly kvHeads: number;
  readonly headDim: number;
  readonly vocabulary: number;
  /** Positions the model was made for. */
  readonly maxPositions: number;
  /** Columns of the widest activation a row has in a workspace. */
  readonly widestRow: number;
  readonly eosTokenIds: readonly number[];
}

/** A loaded decoder: weights on the device, stateless between calls. */
export interface Decoder {
  readonly shape: DecoderShape;
  readonly parameters: number;
  /** Activation tensors for at most `rows` rows of a batch and `logitRows` sampled rows. */
  createWorkspace(device: Device, rows: number, logitRows: number): DecoderWorkspace;
}

export interface DecoderWorkspace {
  /** Appends a forward pass; returns the logits [logitRows, V]. */
  forward(rec: Recorder, input: ForwardInput, kv: KVCache): Tensor;
}

/** One architecture of config.json's `model_type`. */
export interface DecoderDefinition {
  /** Reads and checks config.json; throws EngineError('invalid_model' | 'unsupported') naming the field. */
  parseConfig(json: Readonly<Record<string, unknown>>): DecoderShape;
  /** Takes every weight from the loader; `context` positions of rotary tables are made. */
  load(loader: WeightLoader, json: Readonly<Record<string, unknown>>, context: number): Promise<Decoder>;
}

const DECODERS: ReadonlyMap<string, DecoderDefinition> = new Map([
  ['llama', LLAMA],
  ['mistral', LLAMA],
  ['qwen2', LLAMA],
  ['qwen3', LLAMA],
]);

/** The definition for a config.json; throws EngineError('unsupported') that lists what there is. */
export function decoderFor(json: Readonly<Record<string, unknown>>): DecoderDefinition {
  const type = json['model_type'];
  const definition = DECODERS.get(String(type));
  if (!definition) {
    throw new EngineError('unsupported', `model_type ${JSON.stringify(type)} is not a chat model this build knows: ${[...DECODERS.keys()].join(', ')}`); // prettier-ignore
  }
  return definition;
}
