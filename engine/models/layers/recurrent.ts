/** The contract of blocks that a layer may have instead of attention or beside it, whose memory of a sequence has a fixed size (ops/states.ts). */
import type { Device } from '../../gpu/device.ts';
import type { Recorder } from '../../gpu/recorder.ts';
import type { Tensor } from '../../gpu/tensor.ts';
import type { StateLayer, StateShape } from '../../ops/states.ts';
import type { WeightLoader } from '../weight-loader.ts';
import type { ForwardInput } from '../forward-input.ts';

/** Arguments of one recurrent layer in a forward pass: out = residual + layer(x), for the kept rows. */
export interface RecurrentStep {
  /** [T, C], normed. */
  readonly x: Tensor;
  readonly state: StateLayer;
  readonly eps: number;
  /** Rows that get an output; undefined = all. Every row updates the state. */
  readonly indices: Tensor | undefined;
  readonly kept: number;
  readonly residual: Tensor | undefined;
  readonly out: Tensor;
}

/** A kind of recurrent layer with its sizes: its weights' names and layouts, its activations, its state and its dispatches. */
export interface Recurrent<Weights = unknown, Workspace = unknown> {
  /** State of one layer. */
  readonly state: Omit<StateShape, 'layers'>;
  /** Columns of its widest activation. */
  readonly widest: number;
  /** Loads the weights of a layer, below `at`, such as `model.layers.0`. */
  load(loader: WeightLoader, at: string): Promise<Weights>;
  workspace(device: Device, rows: number, logitRows: number): Workspace;
  record(rec: Recorder, weights: Weights, ws: Workspace, step: RecurrentStep, input: ForwardInput): void;
}
