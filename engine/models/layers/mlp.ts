/** The feed-forward half of a layer. */
import type { Recorder } from '../../gpu/recorder.ts';
import type { Tensor } from '../../gpu/tensor.ts';
import type { Activation, Clamp } from '../../ops/activation.ts';
import type { ShareRule } from '../../ops/experts.ts';
import { gatedLinear, normedRows } from '../../ops/fused-linear.ts';
import type { NormedRows } from '../../ops/fused-linear.ts';
import { linear } from '../../ops/linear.ts';
import type { PromptRows } from '../../ops/linear-matrix.ts';
import type { LinearWeight } from '../../ops/weight.ts';
import { sizeOf } from '../../util/math.ts';
import type { Range } from '../../util/math.ts';
import type { WeightLoader } from '../weight-loader.ts';
import type { TensorMaker } from './by-turns.ts';

export interface MlpConfig {
  readonly hidden: number;
  /** Columns of the one MLP: of layers without experts, and of the expert that all rows share. */
  readonly intermediate: number;
  /** Of layers that have experts. */
  readonly experts?: ExpertsConfig | undefined;
}

export interface ExpertsConfig {
  readonly count: number;
  /** That each row goes to. */
  readonly perRow: number;
  /** Columns of each. */
  readonly intermediate: number;
  /** How shares are made of the router's logits; default: a softmax over all. */
  readonly routing?: { readonly sigmoid: boolean; readonly hasBias: boolean } | undefined;
  readonly shares: ShareRule;
  /** Every row also goes through one MLP of `MlpConfig.intermediate` columns, with the sigmoid of a logit of its own as its share. */
  readonly hasShared?: boolean | undefined;
  /** Each expert's share is multiplied with a number of its own. */
  readonly hasScales?: boolean | undefined;
  /** The MLP of `MlpConfig.intermediate` columns stands beside the experts in every layer, with norms of its own and theirs. */
  readonly besideMlp?: boolean | undefined;
  /** Router and experts have biases. */
  readonly hasBias?: boolean | undefined;
  /** The gates are cut, and gates and ups of one tensor stand by turns (gpt-oss). */
  readonly clamp?: Clamp | undefined;
  /** Of every layer, whether it has them instead of one MLP. */
  readonly layers: readonly boolean[];
}

/** What a rank has of every layer: columns of the MLP, or whole experts. */
export interface MlpShare {
  readonly columns: Range;
  /** Empty where no layer has any. */
  readonly experts: Range;
}

/** What the stack records of one: out = residual + mlp(input). */
export interface MlpStep extends PromptRows {
  readonly input: NormedRows;
  readonly residual: Tensor | undefined;
  readonly out: Tensor;
}

/** A kind of MLP: its weights' names and layouts, its activations and its dispatches, all for what a rank has of it. */
export interface MlpKind<Weights, Workspace> {
  /** What config.json must call its activation; absent there is this one. */
  readonly hiddenAct: string;
  /** Columns of the widest activation, where a row has several all of them. */
  widest(config: MlpConfig, share: MlpShare): number;
  /** Takes the weights of a layer, below `at`, such as `model.layers.0.mlp`. */
  load(loader: WeightLoader, at: string, config: MlpConfig, share: MlpShare, layer: number): Promise<Weights>;
  workspace(device: TensorMaker, config: MlpConfig, share: MlpShare, rows: number): Workspace;
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

/** Activations by the names that config.json has for them. */
export const HIDDEN_ACTS = { silu: 'silu', gelu_pytorch_tanh: 'gelu_tanh', relu2: 'relu2' } as const satisfies Readonly<
  Record<string, Activation>
>;

export type HiddenAct = keyof typeof HIDDEN_ACTS;

/** down(f(gate(x)) * up(x)). `fused`: gate and up are one tensor, `gate_up_proj`, one below the other. */
export function gatedMlp(hiddenAct: HiddenAct, { fused = false } = {}): MlpKind<GatedMlp, GatedMlpWorkspace> {
  return {
    hiddenAct,
    widest: (_, { columns }) => 2 * sizeOf(columns),
    async load(loader, at, { hidden, intermediate }, { columns }) {
      const gateUp = ['gate', 'up'].map((name, i) =>
        fused
          ? { name: `${at}.gate_up_proj.weight`, outFeatures: 2 * intermediate, rows: shifted(columns, i * intermediate) }
          : { name: `${at}.${name}_proj.weight`, outFeatures: intermediate, rows: columns },
      );
      return {
        gateUp: await loader.mergedLinear(`${at}.gate_up`, gateUp, hidden),
        down: await loader.linear(`${at}.down_proj.weight`, hidden, intermediate, { columns }),
      };
    },
    workspace: (device, _, { columns }, rows) => ({
      gateUp: device.tensor('gate_up', 'f32', [rows, 2 * sizeOf(columns)]),
      activated: device.tensor('activated', 'f32', [rows, sizeOf(columns)]),
    }),
    record(rec, { gateUp, down }, ws, { input, residual, out, ...rows }) {
      gatedLinear(rec, { input, weight: gateUp, activation: HIDDEN_ACTS[hiddenAct], gateUp: ws.gateUp, out: ws.activated, ...rows });
      linear(rec, { x: ws.activated, weight: down, residual, out, ...rows });
    },
  };
}

function shifted({ from, to }: Range, by: number): Range {
  return { from: from + by, to: to + by };
}

export interface PlainMlp {
  readonly up: LinearWeight;
  readonly down: LinearWeight;
}

export interface PlainMlpWorkspace {
  readonly activated: Tensor; // [T, I]
}

/** down(f(up(x))), without a gate. */
export function plainMlp(hiddenAct: HiddenAct): MlpKind<PlainMlp, PlainMlpWorkspace> {
  return {
    hiddenAct,
    widest: (_, { columns }) => sizeOf(columns),
    load: async (loader, at, { hidden, intermediate }, { columns }) => ({
      up: await loader.linear(`${at}.up_proj.weight`, intermediate, hidden, { rows: columns }),
      down: await loader.linear(`${at}.down_proj.weight`, hidden, intermediate, { columns }),
    }),
    workspace: (device, _, { columns }, rows) => ({ activated: device.tensor('activated', 'f32', [rows, sizeOf(columns)]) }),
    record(rec, { up, down }, { activated }, { input, residual, out, ...rows }) {
      linear(rec, { x: normedRows(rec, input, rows.rows), weight: up, activation: HIDDEN_ACTS[hiddenAct], out: activated, ...rows });
      linear(rec, { x: activated, weight: down, residual, out, ...rows });
    },
  };
}

/** What kernels read at once. */
const QUAD = 4;
/** Blocks that quantised weights may have: what cuts none can stay packed. */
const BLOCKS = [256, 32];
/** Units a rank gets at least, so that no rank has much more than another. */
const LEAST_UNITS = 8;

/** The unit that MLP columns are dealt out in: whole blocks of quantised weights, where there are enough of them. */
export function mlpUnit(columns: number, ranks: number): number {
  return BLOCKS.find((block) => columns % block === 0 && columns / block >= LEAST_UNITS * ranks) ?? QUAD;
}
