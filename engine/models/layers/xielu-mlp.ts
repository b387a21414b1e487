/** An MLP without a gate whose activation, xIELU (https://arxiv.org/abs/2411.13010), has numbers of its own in every layer. */
import { xielu } from '../../ops/activation.ts';
import type { XieluCurve } from '../../ops/activation.ts';
import { normedRows } from '../../ops/fused-linear.ts';
import { linear } from '../../ops/linear.ts';
import type { WeightLoader } from '../weight-loader.ts';
import { plainMlp } from './mlp.ts';
import type { MlpKind, PlainMlp, PlainMlpWorkspace, StoredCurve } from './mlp.ts';

export interface XieluMlp extends PlainMlp {
  readonly curve: XieluCurve;
}

/** down(xIELU(up(x))). Each layer's numbers are tensors below `act_fn`, or in `MlpConfig.curves` where the file has them among its settings. */
export function xieluMlp(): MlpKind<XieluMlp, PlainMlpWorkspace> {
  const plain = plainMlp('relu');
  return {
    ...plain,
    hiddenAct: 'xielu',
    async load(loader, at, config, share, layer) {
      const stored = config.curves?.[layer] ?? (await storedCurve(loader, `${at}.act_fn`));
      return { ...(await plain.load(loader, at, { ...config, activation: 'none' }, share, layer)), curve: curveOf(stored) };
    },
    record(rec, { up, upBias, down, downBias, curve }, { activated }, { input, residual, out, ...rows }) {
      linear(rec, { x: normedRows(rec, input, rows.rows), weight: up, bias: upBias, out: activated, ...rows });
      xielu(rec, { x: activated, count: rows.rows * activated.shape[1]!, ...curve });
      linear(rec, { x: activated, weight: down, bias: downBias, residual, out, ...rows });
    },
  };
}

async function storedCurve(loader: WeightLoader, at: string): Promise<StoredCurve> {
  // transformers stores the learned numbers as vectors of one, and the others as scalars.
  const one = async (name: string, shape: readonly number[]): Promise<number> => (await loader.data(`${at}.${name}`, shape))[0]!;
  return { alpha_p: await one('alpha_p', [1]), alpha_n: await one('alpha_n', [1]), beta: await one('beta', []), eps: await one('eps', []) };
}

function curveOf({ alpha_p, alpha_n, beta, eps }: StoredCurve): XieluCurve {
  return { alphaP: softplus(alpha_p), alphaN: beta + softplus(alpha_n), beta, eps };
}

function softplus(x: number): number {
  return Math.max(x, 0) + Math.log1p(Math.exp(-Math.abs(x)));
}
