/** The feed-forward half of a layer as the sum of a dense MLP and a mixture of experts, each with norms of its own (Gemma 4's 26B-A4B). */
import type { Tensor } from '../../gpu/tensor.ts';
import { rmsNorm } from '../../ops/norm.ts';
import type { WeightLoader } from '../weight-loader.ts';
import type { TensorMaker } from './by-turns.ts';
import { expertsWorkspace, loadExperts, recordExperts, recordRoutes, widestOfExperts } from './experts.ts';
import type { Experts, ExpertsWorkspace } from './experts.ts';
import { gatedMlp } from './mlp.ts';
import type { GatedMlp, GatedMlpWorkspace, HiddenAct, MlpKind } from './mlp.ts';

interface Beside {
  readonly dense: GatedMlp;
  /** Norm of the MLP's output. */
  readonly denseNorm: Tensor; // [C]
  /** Norm of the router's input, whose weights are the router's scale of each channel, divided by sqrt(C). */
  readonly routerNorm: Tensor; // [C]
  /** Norms of the experts' input and output. */
  readonly inputNorm: Tensor; // [C]
  readonly outputNorm: Tensor; // [C]
  readonly experts: Experts;
}

interface BesideWorkspace {
  readonly dense: GatedMlpWorkspace;
  /** Absent where no layer has experts. */
  readonly beside:
    | {
        readonly experts: ExpertsWorkspace;
        readonly normed: Tensor; // [T, C] of the router, then of the experts
        readonly made: Tensor; // [T, C] by the MLP, then by the experts
        readonly ofMlp: Tensor; // [T, C]
      }
    | undefined;
}

/**
 * An MLP beside experts: norm(mlp(x)) + norm(sum over a row's experts e of scale_e share(e) e(norm(y))). y is the residual stream, whose
 * norm x is; the router reads y through a norm of its own. Without `config.experts` mlp(x) alone.
 */
export function mlpBesideExperts(hiddenAct: HiddenAct): MlpKind<GatedMlp | Beside, BesideWorkspace> {
  const dense = gatedMlp(hiddenAct);
  return {
    hiddenAct,
    widest: (config, share) => Math.max(dense.widest(config, share), widestOfExperts(config)),
    async load(loader, at, config, share, layer) {
      const mlp = await dense.load(loader, at, config, share, layer);
      const { hidden, experts } = config;
      if (!experts) return mlp;
      return {
        dense: mlp,
        ...(await loadNorms(loader, at, hidden)),
        experts: await loadExperts(loader, at, hidden, experts, share.experts),
      };
    },
    workspace: (device, config, share, rows) => ({
      dense: dense.workspace(device, config, share, rows),
      beside: config.experts && {
        experts: expertsWorkspace(device, config, config.experts, share, rows),
        ...between(device, config.hidden, rows),
      },
    }),
    record(rec, weights, ws, step) {
      if (!('experts' in weights)) return dense.record(rec, weights, ws.dense, step);
      const { input, residual, out, rows } = step;
      const { x: before, eps } = input;
      const { experts, normed, made, ofMlp } = ws.beside!;
      dense.record(rec, weights.dense, ws.dense, { ...step, residual: undefined, out: made });
      rmsNorm(rec, { x: made, weight: weights.denseNorm, residual, out: ofMlp, eps, rows });
      rmsNorm(rec, { x: before, weight: weights.routerNorm, out: normed, eps, rows });
      recordRoutes(rec, weights.experts, experts, normed, rows);
      rmsNorm(rec, { x: before, weight: weights.inputNorm, out: normed, eps, rows });
      recordExperts(rec, hiddenAct, weights.experts, experts, { x: normed, residual: undefined, out: made, rows });
      rmsNorm(rec, { x: made, weight: weights.outputNorm, residual: ofMlp, out, eps, rows });
    },
  };
}

async function loadNorms(loader: WeightLoader, at: string, hidden: number): Promise<Omit<Beside, 'dense' | 'experts'>> {
  const norm = (name: string, scale = 1): Promise<Tensor> => loader.tensor(`${at}.${name}`, [hidden], 0, scale);
  return {
    denseNorm: await norm('mlp_post_norm.weight'),
    routerNorm: await norm('router_scale', hidden ** -0.5),
    inputNorm: await norm('experts_pre_norm.weight'),
    outputNorm: await norm('experts_post_norm.weight'),
  };
}

function between(device: TensorMaker, hidden: number, rows: number): Record<'normed' | 'made' | 'ofMlp', Tensor> {
  const make = (name: string): Tensor => device.tensor(name, 'f32', [rows, hidden]);
  return { normed: make('normed beside'), made: make('made beside'), ofMlp: make('normed MLP') };
}
