/** The feed-forward half of a layer: the contract of MLPs, and MLPs with and without a gate. */
import type { Recorder } from '../../gpu/recorder.ts';
import type { Tensor } from '../../gpu/tensor.ts';
import type { Activation, Clamp } from '../../ops/activation.ts';
import type { ExpertGroups, ShareRule } from '../../ops/experts.ts';
import { gatedLinear, normedLinear, normedRows } from '../../ops/fused-linear.ts';
import type { NormedRows } from '../../ops/fused-linear.ts';
import { linear } from '../../ops/linear.ts';
import { addLora } from '../../ops/lora.ts';
import type { LoraRows, LoraWeight } from '../../ops/lora.ts';
import type { PromptRows } from '../../ops/linear-matrix.ts';
import type { LinearWeight } from '../../ops/weight.ts';
import type { Json } from '../../util/json.ts';
import { sizeOf } from '../../util/math.ts';
import type { Range } from '../../util/math.ts';
import type { WeightLoader } from '../weight-loader.ts';
import type { TensorMaker } from './by-turns.ts';

export interface MlpConfig {
  readonly hidden: number;
  /** Columns of a dense MLP: that of layers without experts, or the shared expert. */
  readonly intermediate: number;
  /** The products of an MLP have biases. */
  readonly mlpBias?: boolean | undefined;
  /** The activation of an MLP without a gate, in families whose files choose it; absent = that of the kind of MLP. */
  readonly activation?: Activation | undefined;
  /** By layer, the numbers of its activation where they are no tensors (xielu-mlp.ts); absent = they are. */
  readonly curves?: readonly StoredCurve[] | undefined;
  /** Mixture of experts; absent = all layers are dense. */
  readonly experts?: ExpertsConfig | undefined;
}

/** The numbers of a layer's xIELU as checkpoints store them: softplus makes the slopes of them. */
export type StoredCurve = Readonly<Record<'alpha_p' | 'alpha_n' | 'beta' | 'eps', number>>;

export interface ExpertsConfig {
  readonly count: number;
  /** Experts that each row is routed to. */
  readonly perRow: number;
  /** Columns of each expert. */
  readonly intermediate: number;
  /** How the router's logits become scores; default: a softmax over all experts. */
  readonly routing?:
    | {
        readonly sigmoid: boolean;
        readonly hasBias: boolean;
        readonly groups?: ExpertGroups | undefined;
        readonly cutoff?: number | undefined;
      }
    | undefined;
  readonly shares: ShareRule;
  /**
   * A shared expert of `MlpConfig.intermediate` columns serves every row: weighted by the sigmoid of a router logit of its own, or, ungated,
   * added as it is.
   */
  readonly hasShared?: boolean | 'ungated' | undefined;
  /** Each expert's share is multiplied by a learned scale. */
  readonly hasScales?: boolean | undefined;
  /** Every layer has a dense MLP of `MlpConfig.intermediate` columns beside its experts, each with norms of its own. */
  readonly besideMlp?: boolean | undefined;
  /** The router and the experts have biases. */
  readonly hasBias?: boolean | undefined;
  /** An expert has no gate, as an MLP of plainMlp. */
  readonly isPlain?: boolean | undefined;
  /** Gates and ups are clamped; gate and up rows that share a tensor alternate (gpt-oss). */
  readonly clamp?: Clamp | undefined;
  /** By layer: whether it has experts instead of a dense MLP. */
  readonly layers: readonly boolean[];
}

/** A rank's share of every layer: columns of the dense MLP, and whole experts. */
export interface MlpShare {
  readonly columns: Range;
  /** Range of experts; empty where no layer has any. */
  readonly experts: Range;
}

/** Arguments of one MLP in a forward pass: out = residual + mlp(input). */
export interface MlpStep extends PromptRows {
  readonly input: NormedRows;
  readonly residual: Tensor | undefined;
  readonly out: Tensor;
  /** LoRA adapters of the rows; absent = no row has one. */
  readonly lora?: LoraRows | undefined;
}

/** A kind of MLP: its weights' names and layouts, its activations and its dispatches, all for one rank's share. */
export interface MlpKind<Weights, Workspace> {
  /** The activation function's name in config.json, which is also the default. */
  readonly hiddenAct: string;
  /** Columns of the widest activation per row; with experts, of all experts of a row together. */
  widest(config: MlpConfig, share: MlpShare): number;
  /** Loads the weights of a layer, below `at`, such as `model.layers.0.mlp`. */
  load(loader: WeightLoader, at: string, config: MlpConfig, share: MlpShare, layer: number): Promise<Weights>;
  workspace(device: TensorMaker, config: MlpConfig, share: MlpShare, rows: number): Workspace;
  record(rec: Recorder, weights: Weights, ws: Workspace, step: MlpStep): void;
}

/** Weights of a gated MLP. gate and up are merged at load, because they read the same input. */
export interface GatedMlp {
  readonly gateUp: LinearWeight;
  /** [2 I] */
  readonly gateUpBias: Tensor | undefined;
  readonly down: LinearWeight;
  /** [C], on the first rank only, so that it is added once. */
  readonly downBias: Tensor | undefined;
  /** What LoRA adapters add to both products; undefined = nothing. */
  readonly lora: { readonly gateUp: LoraWeight | undefined; readonly down: LoraWeight | undefined };
}

export interface GatedMlpWorkspace {
  readonly gateUp: Tensor; // [T, 2 I]
  readonly activated: Tensor; // [T, I]
}

/** Activation functions by their names in config.json. */
export const HIDDEN_ACTS = {
  silu: 'silu',
  gelu: 'gelu',
  // The same function by tanh, in three orders of rounding.
  gelu_pytorch_tanh: 'gelu_tanh',
  gelu_new: 'gelu_tanh',
  gelu_fast: 'gelu_tanh',
  relu: 'relu',
  relu2: 'relu2',
} as const satisfies Readonly<Record<string, Activation>>;

export type HiddenAct = keyof typeof HIDDEN_ACTS;

/** The names of activations that an MLP without a gate may have where a family's files choose it. */
export const PLAIN_ACTS = ['gelu', 'gelu_new', 'gelu_fast', 'gelu_pytorch_tanh', 'relu'] as const satisfies readonly HiddenAct[];

/** The activation that a field of config.json, which has one of PLAIN_ACTS, names. */
export function activationOf(json: Json, field: string, fallback: HiddenAct): Activation {
  return HIDDEN_ACTS[(json[field] ?? fallback) as HiddenAct];
}

/**
 * A gated MLP: down(f(gate(x)) * up(x)). A checkpoint may stack gate and up in one tensor, `gate_up_proj`; `fused`: those of the family do.
 */
export function gatedMlp(hiddenAct: HiddenAct, { fused = false } = {}): MlpKind<GatedMlp, GatedMlpWorkspace> {
  return {
    hiddenAct,
    widest: (_, { columns }) => 2 * sizeOf(columns),
    async load(loader, at, { hidden, intermediate, mlpBias = false }, { columns }) {
      const isStacked = fused || loader.has(`${at}.gate_up_proj.weight`);
      const parts = ['gate', 'up'].map((name, i) =>
        isStacked
          ? { name: `${at}.gate_up_proj`, size: 2 * intermediate, rows: shifted(columns, i * intermediate) }
          : { name: `${at}.${name}_proj`, size: intermediate, rows: columns },
      );
      const matrices = parts.map(({ name, size, rows }) => ({ name: `${name}.weight`, outFeatures: size, rows }));
      const biases = parts.map((part) => ({ ...part, name: `${part.name}.bias` }));
      return {
        gateUp: await loader.mergedLinear(`${at}.gate_up`, matrices, hidden),
        gateUpBias: mlpBias ? await loader.mergedVector(`${at}.gate_up bias`, biases) : undefined,
        down: await loader.linear(`${at}.down_proj.weight`, hidden, intermediate, { columns }),
        downBias: mlpBias ? await firstBias(loader, `${at}.down_proj.bias`, hidden, columns) : undefined,
        lora: {
          gateUp: await loader.lora(
            `${at}.gate_up`,
            parts.map(({ name, size, rows }) => ({ module: name, outFeatures: size, rows })),
            { inFeatures: hidden },
          ),
          down: await loraOfDown(loader, `${at}.down_proj`, { hidden, intermediate }, columns),
        },
      };
    },
    workspace: (device, _, { columns }, rows) => ({
      gateUp: device.tensor('gate_up', 'f32', [rows, 2 * sizeOf(columns)]),
      activated: device.tensor('activated', 'f32', [rows, sizeOf(columns)]),
    }),
    record(rec, { gateUp: weight, gateUpBias: bias, down, downBias, lora: ofLoras }, ws, { input, residual, out, lora, ...rows }) {
      const { gateUp, activated } = ws;
      const activation = HIDDEN_ACTS[hiddenAct];
      if (lora && ofLoras.gateUp) {
        normedLinear(rec, { input, weight, bias, out: gateUp, ...rows });
        addLora(rec, { ...lora, input, weight: ofLoras.gateUp, out: gateUp, gate: { activation, out: activated }, rows: rows.rows });
      } else gatedLinear(rec, { input, weight, bias, activation, gateUp, out: activated, ...rows });
      linear(rec, { x: activated, weight: down, bias: downBias, residual, out, ...rows });
      if (lora && ofLoras.down) addLora(rec, { ...lora, input: { x: activated }, weight: ofLoras.down, out, rows: rows.rows });
    },
  };
}

/** A bias [C] that the first rank alone adds. */
async function firstBias(loader: WeightLoader, name: string, hidden: number, columns: Range): Promise<Tensor | undefined> {
  if (columns.from === 0) return loader.tensor(name, [hidden]);
  loader.skip(name);
  return undefined;
}

/** What LoRA adapters add to the product by a rank's columns of `module`, the last of an MLP. */
function loraOfDown(
  loader: WeightLoader,
  module: string,
  { hidden, intermediate }: Pick<MlpConfig, 'hidden' | 'intermediate'>,
  columns: Range,
): Promise<LoraWeight | undefined> {
  return loader.lora(module, [{ module, outFeatures: hidden }], { inFeatures: intermediate, columns });
}

function shifted({ from, to }: Range, by: number): Range {
  return { from: from + by, to: to + by };
}

export interface PlainMlp {
  readonly up: LinearWeight;
  /** [I] */
  readonly upBias: Tensor | undefined;
  readonly down: LinearWeight;
  /** [C], on the first rank only, so that it is added once. */
  readonly downBias: Tensor | undefined;
  readonly activation: Activation;
}

export interface PlainMlpWorkspace {
  readonly activated: Tensor; // [T, I]
}

/** An MLP without a gate: down(f(up(x))). `names`: those of its products in the checkpoint. */
export function plainMlp(
  hiddenAct: HiddenAct,
  { up: upName, down: downName } = { up: 'up_proj', down: 'down_proj' },
): MlpKind<PlainMlp, PlainMlpWorkspace> {
  return {
    hiddenAct,
    widest: (_, { columns }) => sizeOf(columns),
    async load(loader, at, { hidden, intermediate, mlpBias = false, activation = HIDDEN_ACTS[hiddenAct] }, { columns }) {
      const [up, down] = [`${at}.${upName}`, `${at}.${downName}`];
      return {
        up: await loader.linear(`${up}.weight`, intermediate, hidden, { rows: columns }),
        upBias: mlpBias ? await loader.mergedVector(`${up}.bias`, [{ name: `${up}.bias`, size: intermediate, rows: columns }]) : undefined,
        down: await loader.linear(`${down}.weight`, hidden, intermediate, { columns }),
        downBias: mlpBias ? await firstBias(loader, `${down}.bias`, hidden, columns) : undefined,
        activation,
      };
    },
    workspace: (device, _, { columns }, rows) => ({ activated: device.tensor('activated', 'f32', [rows, sizeOf(columns)]) }),
    record(rec, { up, upBias, down, downBias, activation }, { activated }, { input, residual, out, ...rows }) {
      const x = normedRows(rec, input, rows.rows);
      linear(rec, { x, weight: up, bias: upBias, activation, out: activated, ...rows });
      linear(rec, { x: activated, weight: down, bias: downBias, residual, out, ...rows });
    },
  };
}

/** Columns that kernels read at once, a vec4. */
const QUAD = 4;
/** Columns of quantised blocks: a matrix that is cut between blocks can stay packed. */
const BLOCKS = [256, 32];
/** Least number of units per rank, so that ranks get nearly equal shares. */
const LEAST_UNITS = 8;

/** Unit in which MLP columns are dealt out to ranks: a quantised block where there are enough of them, else a vec4. */
export function mlpUnit(columns: number, ranks: number): number {
  return BLOCKS.find((block) => columns % block === 0 && columns / block >= LEAST_UNITS * ranks) ?? QUAD;
}
