/** The feed-forward half of a layer. */
import type { Device } from '../../gpu/device.ts';
import type { Recorder } from '../../gpu/recorder.ts';
import type { Tensor } from '../../gpu/tensor.ts';
import { siluMul } from '../../ops/activation.ts';
import type { Activation } from '../../ops/activation.ts';
import { linear } from '../../ops/linear.ts';
import type { LinearWeight } from '../../ops/linear.ts';
import type { Range } from '../../util/math.ts';
import type { WeightLoader } from '../weight-loader.ts';

export interface MlpConfig {
  readonly hidden: number;
  readonly intermediate: number;
}

/** What the stack records of one: out = residual + mlp(x). */
export interface MlpStep {
  readonly x: Tensor;
  readonly residual: Tensor | undefined;
  readonly out: Tensor;
  readonly rows: number;
}

/** A kind of MLP: its weights' names and layouts, its activations and its dispatches. Its columns are what ranks share. */
export interface MlpKind<Weights, Workspace> {
  /** What config.json must call its activation; absent there is this one. */
  readonly hiddenAct: string;
  /** Columns of the widest activation for so many columns of a rank. */
  widest(columns: number): number;
  /** Takes the weights below `at`, such as `model.layers.0.mlp`, or the columns of a rank. */
  load(loader: WeightLoader, at: string, config: MlpConfig, columns: Range): Promise<Weights>;
  workspace(device: Device, columns: number, rows: number): Workspace;
  record(rec: Recorder, weights: Weights, ws: Workspace, step: MlpStep): void;
}

/** gate and up are merged at load: they read the same input. */
export interface GatedMlp {
  readonly gateUp: LinearWeight;
  readonly down: LinearWeight;
}

export interface GatedMlpWorkspace {
  readonly gateUp: Tensor; // [T, 2 I]
  readonly activated: Tensor; // [T, I]
}

/** down(silu(gate(x)) * up(x)). */
export const GATED_SILU: MlpKind<GatedMlp, GatedMlpWorkspace> = {
  hiddenAct: 'silu',
  widest: (columns) => 2 * columns,
  async load(loader, at, { hidden, intermediate }, columns) {
    const gateUp = ['gate', 'up'].map((name) => ({ name: `${at}.${name}_proj.weight`, outFeatures: intermediate, rows: columns }));
    return {
      gateUp: await loader.mergedLinear(`${at}.gate_up`, gateUp, hidden),
      down: await loader.linear(`${at}.down_proj.weight`, hidden, intermediate, { columns }),
    };
  },
  workspace: (device, columns, rows) => ({
    gateUp: device.tensor('gate_up', 'f32', [rows, 2 * columns]),
    activated: device.tensor('activated', 'f32', [rows, columns]),
  }),
  record(rec, { gateUp, down }, ws, { x, residual, out, rows }) {
    linear(rec, { x, weight: gateUp, out: ws.gateUp, rows });
    siluMul(rec, { gateUp: ws.gateUp, out: ws.activated, rows });
    linear(rec, { x: ws.activated, weight: down, residual, out, rows });
  },
};

export interface PlainMlp {
  readonly up: LinearWeight;
  readonly down: LinearWeight;
}

export interface PlainMlpWorkspace {
  readonly activated: Tensor; // [T, I]
}

/** down(f(up(x))), without a gate. */
export function plainMlp(activation: Activation): MlpKind<PlainMlp, PlainMlpWorkspace> {
  return {
    hiddenAct: activation,
    widest: (columns) => columns,
    load: async (loader, at, { hidden, intermediate }, columns) => ({
      up: await loader.linear(`${at}.up_proj.weight`, intermediate, hidden, { rows: columns }),
      down: await loader.linear(`${at}.down_proj.weight`, hidden, intermediate, { columns }),
    }),
    workspace: (device, columns, rows) => ({ activated: device.tensor('activated', 'f32', [rows, columns]) }),
    record(rec, { up, down }, { activated }, { x, residual, out, rows }) {
      linear(rec, { x, weight: up, activation, out: activated, rows });
      linear(rec, { x: activated, weight: down, residual, out, rows });
    },
  };
}

/** MLP columns are dealt out in units the kernels read at once. */
export const MLP_UNIT = 4;
