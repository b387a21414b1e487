/** The feed-forward half of a layer as a mixture of experts: MLPs, gated or not, a few of which a router chooses for each row. */
import { floatStorage } from '../../config.ts';
import type { Recorder } from '../../gpu/recorder.ts';
import type { Tensor } from '../../gpu/tensor.ts';
import { activate, gateClamped, gateMul } from '../../ops/activation.ts';
import { combineRows, createRoutes, expertLinear, routeRows } from '../../ops/experts.ts';
import type { Routes } from '../../ops/experts.ts';
import { normedRows } from '../../ops/fused-linear.ts';
import { linear } from '../../ops/linear.ts';
import type { LinearWeight } from '../../ops/weight.ts';
import { concatenated, sizeOf } from '../../util/math.ts';
import type { Range } from '../../util/math.ts';
import type { MatrixPart, WeightLoader } from '../weight-loader.ts';
import type { TensorMaker } from './by-turns.ts';
import { gatedMlp, HIDDEN_ACTS } from './mlp.ts';
import type { ExpertsConfig, HiddenAct, MlpConfig, MlpKind, MlpShare, MlpStep } from './mlp.ts';

/** Weights of a layer's experts: a rank's experts, stacked by rows, and the router of all experts. */
export interface Experts {
  readonly config: ExpertsConfig;
  /** [E, C], with one more row for the weight of a gated shared expert. */
  readonly router: LinearWeight;
  /** [E]. */
  readonly routerBias: Tensor | undefined;
  /** [E]: bias added to the scores for choosing experts only, not to their shares. */
  readonly choiceBias: Tensor | undefined;
  /**
   * [2 E I, C]: the gates of all experts and then their ups (2 segments); or gate and up rows expert by expert (1 segment). [E I, C], the
   * ups alone, of experts without gates.
   */
  readonly gateUp: LinearWeight;
  readonly gateUpBias: Tensor | undefined; // [2 E I]
  /** Number of separate runs of rows that an expert has in `gateUp`. */
  readonly segments: 1 | 2;
  readonly down: LinearWeight; // [E C, I]
  readonly downBias: Tensor | undefined; // [E C]
  /** [E]: learned scales of the experts' shares. */
  readonly scales: Tensor | undefined;
}

/** Weights of a layer with experts: with the shared expert, if there is one. */
interface Mixture<Dense> extends Experts {
  readonly shared: Dense | undefined;
}

export interface ExpertsWorkspace {
  readonly logits: Tensor; // [T, E], or a column more
  readonly routes: Routes;
  readonly gateUp: Tensor; // [T k, 2 I], without gates [T k, I]
  readonly activated: Tensor; // [T k, I]
  readonly y: Tensor; // [T k, C]
  readonly shared: Tensor | undefined; // [T, C]
}

interface MixedWorkspace<Dense> {
  readonly experts: ExpertsWorkspace | undefined;
  /** Activations of dense layers and of the shared expert. */
  readonly dense: Dense | undefined;
}

/**
 * A mixture of experts in the layers that `config.experts` names, a gated MLP in the others: the sum over a row's experts e of share(e) *
 * down_e(f(gate_e(x)) * up_e(x)).
 */
export function expertMlp(hiddenAct: HiddenAct) {
  return expertsOr(hiddenAct, gatedMlp(hiddenAct));
}

/** The same with `dense` in layers without experts and as the shared expert. */
export function expertsOr<Dense, Workspace>(
  hiddenAct: HiddenAct,
  dense: MlpKind<Dense, Workspace>,
): MlpKind<Dense | Mixture<Dense>, MixedWorkspace<Workspace>> {
  const isMixture = (weights: Dense | Mixture<Dense>): weights is Mixture<Dense> => 'router' in (weights as object);
  return {
    hiddenAct,
    widest(config, share) {
      return Math.max(widestOfExperts(config), hasDense(config) ? dense.widest(config, share) : 0);
    },
    async load(loader, at, config, share, layer) {
      const { experts } = config;
      if (!experts?.layers[layer]) return dense.load(loader, at, config, share, layer);
      const shared = hasShared(experts) ? await dense.load(loader, `${at}.shared_expert`, config, share, layer) : undefined;
      return { ...(await loadExperts(loader, at, config.hidden, experts, share.experts)), shared };
    },
    workspace: (device, config, share, rows) => ({
      experts: config.experts && expertsWorkspace(device, config, config.experts, share, rows),
      dense: hasDense(config) ? dense.workspace(device, config, share, rows) : undefined,
    }),
    record(rec, weights, ws, step) {
      if (!isMixture(weights)) return dense.record(rec, weights, ws.dense!, step);
      const { input, rows } = step;
      const x = normedRows(rec, input, rows);
      const { shared } = ws.experts!;
      const isUngated = weights.config.hasShared === 'ungated';
      recordRoutes(rec, weights, ws.experts!, x, rows);
      const ofAll = { ...step, input: { ...input, x, norm: undefined }, residual: isUngated ? step.residual : undefined };
      if (weights.shared) dense.record(rec, weights.shared, ws.dense!, { ...ofAll, out: shared! });
      recordExperts(rec, hiddenAct, weights, ws.experts!, { ...step, x, ...(isUngated && { residual: shared }) });
    },
  };
}

function hasShared({ hasShared = false }: ExpertsConfig): boolean {
  return hasShared !== false;
}

/** Whether the router has a logit for the shared expert, behind those of all others. */
function hasSharedGate({ hasShared }: ExpertsConfig): boolean {
  return hasShared === true;
}

function hasDense({ experts }: MlpConfig): boolean {
  return !experts || hasShared(experts) || experts.layers.includes(false);
}

/** Columns of the widest expert activation of a row, over all its experts; 0 without experts. */
export function widestOfExperts({ hidden, experts }: MlpConfig): number {
  return experts ? experts.perRow * Math.max(gateUpColumns(experts), hidden) : 0;
}

function gateUpColumns({ isPlain = false, intermediate }: ExpertsConfig): number {
  return isPlain ? intermediate : 2 * intermediate;
}

/** ws.routes = the experts that the router chooses for each row of x [T, C]. */
export function recordRoutes(
  rec: Recorder,
  { config, router, routerBias, choiceBias }: Experts,
  { logits, routes }: ExpertsWorkspace,
  x: Tensor,
  rows: number,
): void {
  linear(rec, { x, weight: router, bias: routerBias, out: logits, rows });
  routeRows(rec, { logits, routes, rows, ...config.routing, bias: choiceBias });
}

/** out = residual + the weighted sum of each row's experts in ws.routes, applied to x, and of the shared expert. */
export function recordExperts(
  rec: Recorder,
  hiddenAct: HiddenAct,
  { config, gateUp: gatesAndUps, gateUpBias, segments, down, downBias, scales }: Experts,
  { logits, routes, gateUp, activated, y, shared }: ExpertsWorkspace,
  { x, residual, out, rows }: Pick<MlpStep, 'residual' | 'out' | 'rows'> & { readonly x: Tensor },
): void {
  expertLinear(rec, { x, ofPairs: false, weight: gatesAndUps, bias: gateUpBias, segments, routes, out: gateUp, rows });
  const middle = { gateUp, out: activated, rows: rows * config.perRow };
  const activation = HIDDEN_ACTS[hiddenAct];
  if (config.isPlain) activate(rec, { x: gateUp, out: activated, activation, count: middle.rows * config.intermediate });
  else if (config.clamp) gateClamped(rec, { ...middle, ...config.clamp, alternating: segments === 1 });
  else gateMul(rec, { ...middle, activation });
  expertLinear(rec, { x: activated, ofPairs: true, weight: down, bias: downBias, routes, out: y, rows });
  const ofAll = shared && hasSharedGate(config) && { rows: shared, gates: logits, column: config.count };
  combineRows(rec, { y, routes, shares: config.shares, scales, shared: ofAll || undefined, residual, out, rows });
}

/** Loads the experts `held` and the whole router, below `at`. The router stays in f32: it is small, and rounding would decide near ties. */
export async function loadExperts(loader: WeightLoader, at: string, hidden: number, config: ExpertsConfig, held: Range): Promise<Experts> {
  const { count, intermediate, isPlain = false, hasBias, hasScales, routing } = config;
  for (let expert = 0; expert < count; expert++) if (expert < held.from || expert >= held.to) loader.skipAll(`${at}.experts.${expert}.`);
  const matrices = (part: string, rows: number): readonly MatrixPart[] => expertMatrices(loader, `${at}.experts`, part, { count, rows, columns: hidden, held }); // prettier-ignore
  const routers = [{ name: `${at}.gate.weight`, outFeatures: count }, ...(hasSharedGate(config) ? [{ name: `${at}.shared_expert_gate.weight`, outFeatures: 1 }] : [])]; // prettier-ignore
  const fused = ['', '.weight'].some((end) => loader.has(`${at}.experts.gate_up_proj${end}`));
  const gates = isPlain ? [] : matrices('gate', intermediate);
  const gateUp = fused ? matrices('gate_up', 2 * intermediate) : [...gates, ...matrices('up', intermediate)];
  const down = expertMatrices(loader, `${at}.experts`, 'down', { count, rows: hidden, columns: intermediate, held });
  const biases = (...parts: readonly (readonly [string, number])[]): Promise<Tensor> | undefined => hasBias ? expertBiases(loader, `${at}.experts`, parts, count, held) : undefined; // prettier-ignore
  return {
    config,
    routerBias: hasBias ? await loader.tensor(`${at}.gate.bias`, [count]) : undefined,
    router: await loader.as(floatStorage('f32')).mergedLinear(`${at}.router`, routers, hidden),
    choiceBias: routing?.hasBias ? await choiceBias(loader, `${at}.expert_bias`, count) : undefined,
    gateUp: await loader.mergedLinear(`${at}.gate_up`, gateUp, hidden),
    gateUpBias: await (fused ? biases(['gate_up', 2 * intermediate]) : biases(['gate', intermediate], ['up', intermediate])),
    segments: fused || isPlain ? 1 : 2,
    down: await loader.mergedLinear(`${at}.down`, down, intermediate),
    downBias: await biases(['down', hidden]),
    scales: hasScales ? await loader.tensor(`${at}.expert_scales`, [count]) : undefined,
  };
}

/** A router's bias [count], which ERNIE's files have as a matrix of one row. */
async function choiceBias(loader: WeightLoader, name: string, count: number): Promise<Tensor> {
  return loader.tensor(name, loader.shape(name).length > 1 ? [1, count] : [count]);
}

/**
 * A number for each row of the parts [name, rows of an expert], of the experts that are held: [count, rows] each, as one tensor or as
 * GGUF's `.bias`.
 */
async function expertBiases(
  loader: WeightLoader,
  at: string,
  parts: readonly (readonly [part: string, rows: number])[],
  count: number,
  held: Range,
): Promise<Tensor> {
  const all: Float32Array[] = [];
  for (const [part, rows] of parts) {
    const stacked = `${at}.${part}_proj.bias`;
    all.push(await loader.data(loader.has(stacked) ? stacked : `${at}.${part}_proj_bias`, [count, rows], { rows: held }));
  }
  const values = concatenated(all);
  return loader.device.upload(`${at} biases`, 'f32', [values.length], values);
}

/**
 * The parts of the matrix that stacks one [rows, columns] matrix per held expert. A checkpoint has these one by one, stacked as one matrix
 * (GGUF), or as one tensor [count, rows, columns].
 */
function expertMatrices(
  loader: WeightLoader,
  at: string,
  part: string,
  { count, rows, columns, held }: { readonly count: number; readonly rows: number; readonly columns: number; readonly held: Range },
): readonly MatrixPart[] {
  const [stacked, fused] = [`${at}.${part}_proj.weight`, `${at}.${part}_proj`];
  const all = { outFeatures: count * rows, rows: { from: held.from * rows, to: held.to * rows } };
  if (loader.has(stacked)) return [{ name: stacked, ...all }];
  if (loader.has(fused)) return [{ name: fused, ...all, shape: [count, rows, columns] }];
  return Array.from({ length: sizeOf(held) }, (_, i) => ({ name: `${at}.${held.from + i}.${part}_proj.weight`, outFeatures: rows }));
}

/** Allocates activations for `rows` rows of a batch. */
export function expertsWorkspace(
  device: TensorMaker,
  { hidden }: MlpConfig,
  experts: ExpertsConfig,
  { experts: held }: MlpShare,
  rows: number,
): ExpertsWorkspace {
  const { count, perRow, intermediate } = experts;
  const pairs = rows * perRow;
  return {
    logits: device.tensor('router logits', 'f32', [rows, hasSharedGate(experts) ? count + 1 : count]),
    routes: createRoutes((label, dtype, shape) => device.tensor(label, dtype, shape), { count, perRow, held }, rows),
    gateUp: device.tensor('expert gate_up', 'f32', [pairs, gateUpColumns(experts)]),
    activated: device.tensor('expert activated', 'f32', [pairs, intermediate]),
    y: device.tensor('expert outputs', 'f32', [pairs, hidden]),
    shared: hasShared(experts) ? device.tensor('shared expert', 'f32', [rows, hidden]) : undefined,
  };
}
