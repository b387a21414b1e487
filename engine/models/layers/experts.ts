/** The feed-forward half of a layer as a mixture of experts: gated MLPs, a few of which a router chooses for every row. */
import { floatStorage } from '../../config.ts';
import type { Device } from '../../gpu/device.ts';
import type { Tensor } from '../../gpu/tensor.ts';
import { gateMul } from '../../ops/activation.ts';
import { combineRows, createRoutes, expertLinear, routeRows } from '../../ops/experts.ts';
import type { Routes } from '../../ops/experts.ts';
import { linear } from '../../ops/linear.ts';
import type { LinearWeight } from '../../ops/weight.ts';
import { sizeOf } from '../../util/math.ts';
import type { MatrixPart, WeightLoader } from '../weight-loader.ts';
import { gatedMlp, HIDDEN_ACTS } from './mlp.ts';
import type { ExpertsConfig, GatedMlp, GatedMlpWorkspace, HiddenAct, MlpConfig, MlpKind, MlpShare } from './mlp.ts';

/** A layer's experts, those of a rank stacked by rows, and the router of all. */
interface Experts {
  readonly router: LinearWeight; // [E, C]
  readonly gateUp: LinearWeight; // gates of all experts, then ups: [2 E I, C]
  readonly down: LinearWeight; // [E C, I]
  readonly normalised: boolean;
}

interface ExpertsWorkspace {
  readonly logits: Tensor; // [T, E]
  readonly routes: Routes;
  readonly gateUp: Tensor; // [T k, 2 I]
  readonly activated: Tensor; // [T k, I]
  readonly y: Tensor; // [T k, C]
}

interface MixedWorkspace {
  readonly experts: ExpertsWorkspace | undefined;
  /** Of layers without experts. */
  readonly dense: GatedMlpWorkspace | undefined;
}

/** sum over a row's experts e of share(e) * down_e(f(gate_e(x)) * up_e(x)) in the layers that `config.experts` names; one gated MLP in the others. */
export function expertMlp(hiddenAct: HiddenAct): MlpKind<GatedMlp | Experts, MixedWorkspace> {
  const dense = gatedMlp(hiddenAct);
  return {
    hiddenAct,
    widest(config, share) {
      const { experts } = config;
      const widest = experts ? experts.perRow * Math.max(2 * experts.intermediate, config.hidden) : 0;
      return Math.max(widest, hasDense(config) ? dense.widest(config, share) : 0);
    },
    load: (loader, at, config, share, layer) =>
      config.experts?.layers[layer] ? loadExperts(loader, at, config, config.experts, share) : dense.load(loader, at, config, share, layer),
    workspace: (device, config, share, rows) => ({
      experts: config.experts && workspaceOf(device, config, config.experts, share, rows),
      dense: hasDense(config) ? dense.workspace(device, config, share, rows) : undefined,
    }),
    record(rec, weights, ws, step) {
      if (!('router' in weights)) return dense.record(rec, weights, ws.dense!, step);
      const { x, residual, out, rows } = step;
      const { logits, routes, gateUp, activated, y } = ws.experts!;
      linear(rec, { x, weight: weights.router, out: logits, rows });
      routeRows(rec, { logits, routes, rows });
      expertLinear(rec, { x, ofPairs: false, weight: weights.gateUp, segments: 2, routes, out: gateUp, rows });
      gateMul(rec, { gateUp, out: activated, activation: HIDDEN_ACTS[hiddenAct], rows: rows * routes.shape.perRow });
      expertLinear(rec, { x: activated, ofPairs: true, weight: weights.down, routes, out: y, rows });
      combineRows(rec, { y, routes, normalised: weights.normalised, residual, out, rows });
    },
  };
}

function hasDense({ experts }: MlpConfig): boolean {
  return !experts || experts.layers.includes(false);
}

/** Of matrices that a checkpoint has by expert, or each as one of all experts (GGUF). The router is small and its near ties decide, so it stays in f32. */
async function loadExperts(
  loader: WeightLoader,
  at: string,
  { hidden }: MlpConfig,
  { count, intermediate, normalised }: ExpertsConfig,
  { experts }: MlpShare,
): Promise<Experts> {
  const held = Array.from({ length: sizeOf(experts) }, (_, i) => experts.from + i);
  const matrices = (part: string, rows: number): MatrixPart[] => {
    const stacked = `${at}.experts.${part}_proj.weight`;
    if (loader.has(stacked))
      return [{ name: stacked, outFeatures: count * rows, rows: { from: experts.from * rows, to: experts.to * rows } }];
    return held.map((expert) => ({ name: `${at}.experts.${expert}.${part}_proj.weight`, outFeatures: rows }));
  };
  for (let expert = 0; expert < count; expert++) if (!held.includes(expert)) loader.skipAll(`${at}.experts.${expert}.`);
  return {
    router: await loader.as(floatStorage('f32')).linear(`${at}.gate.weight`, count, hidden),
    gateUp: await loader.mergedLinear(`${at}.gate_up`, [...matrices('gate', intermediate), ...matrices('up', intermediate)], hidden),
    down: await loader.mergedLinear(`${at}.down`, matrices('down', hidden), intermediate),
    normalised,
  };
}

function workspaceOf(
  device: Device,
  { hidden }: MlpConfig,
  { count, perRow, intermediate }: ExpertsConfig,
  { experts: held }: MlpShare,
  rows: number,
): ExpertsWorkspace {
  const pairs = rows * perRow;
  return {
    logits: device.tensor('router logits', 'f32', [rows, count]),
    routes: createRoutes((label, dtype, shape) => device.tensor(label, dtype, shape), { count, perRow, held }, rows),
    gateUp: device.tensor('expert gate_up', 'f32', [pairs, 2 * intermediate]),
    activated: device.tensor('expert activated', 'f32', [pairs, intermediate]),
    y: device.tensor('expert outputs', 'f32', [pairs, hidden]),
  };
}
