/** What a layer may have in the place of attention: one whose memory of a sequence has a fixed size (ops/states.ts). */
import type { Device } from '../../gpu/device.ts';
import type { Recorder } from '../../gpu/recorder.ts';
import type { Tensor } from '../../gpu/tensor.ts';
import type { StateLayer, StateShape } from '../../ops/states.ts';
import type { WeightLoader } from '../weight-loader.ts';
import type { ForwardInput } from '../forward-input.ts';

/** What the stack records of one: out = residual + layer(x), of the kept rows. */
export interface RecurrentStep {
  /** [T, C] normed. */
  readonly x: Tensor;
  readonly state: StateLayer;
  readonly eps: number;
  /** Only these rows are wanted; absent = all. Every row goes into the state. */
  readonly indices: Tensor | undefined;
  readonly kept: number;
  readonly residual: Tensor | undefined;
  readonly out: Tensor;
}

/** A layer of a model with its sizes read: its weights' names and layouts, its activations, its state and its dispatches. */
export interface Recurrent<Weights = unknown, Workspace = unknown> {
  /** Of each of these layers. */
  readonly state: Omit<StateShape, 'layers'>;
  /** Columns of the widest activation. */
  readonly widest: number;
  /** Takes the weights of a layer, below `at`, such as `model.layers.0`. */
  load(loader: WeightLoader, at: string): Promise<Weights>;
  workspace(device: Device, rows: number, logitRows: number): Workspace;
  record(rec: Recorder, weights: Weights, ws: Workspace, step: RecurrentStep, input: ForwardInput): void;
}
