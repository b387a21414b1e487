/**
 * Learned augmented residual (LAuReL, https://arxiv.org/abs/2411.07501): a low-rank product of attention's input, added beside attention.
 */
import type { Recorder } from '../../gpu/recorder.ts';
import type { Tensor } from '../../gpu/tensor.ts';
import { add } from '../../ops/elementwise.ts';
import { linear } from '../../ops/linear.ts';
import { rmsNorm } from '../../ops/norm.ts';
import type { LinearWeight } from '../../ops/weight.ts';
import type { WeightLoader } from '../weight-loader.ts';
import type { TensorMaker } from './by-turns.ts';

export interface Laurel {
  readonly left: LinearWeight; // [R, C]
  readonly right: LinearWeight; // [C, R]
  readonly norm: Tensor; // [C]
}

export interface LaurelWorkspace {
  readonly left: Tensor; // [T, R]
  readonly right: Tensor; // [T, C]
  readonly sum: Tensor; // [T, C]
}

export async function loadLaurel(loader: WeightLoader, at: string, hidden: number, rank: number): Promise<Laurel> {
  return {
    left: await loader.linear(`${at}.linear_left.weight`, rank, hidden),
    right: await loader.linear(`${at}.linear_right.weight`, hidden, rank),
    norm: await loader.tensor(`${at}.post_laurel_norm.weight`, [hidden]),
  };
}

export function laurelWorkspace(device: TensorMaker, hidden: number, rank: number, rows: number): LaurelWorkspace {
  const make = (name: string, columns: number): Tensor => device.tensor(name, 'f32', [rows, columns]);
  return { left: make('laurel left', rank), right: make('laurel right', hidden), sum: make('laurel sum', hidden) };
}

export interface LaurelStep {
  /** [T, C]: the normed input of attention. */
  readonly x: Tensor;
  /** [T, C]: the residual stream after attention. */
  readonly attended: Tensor;
  readonly out: Tensor;
  readonly eps: number;
  readonly rows: number;
}

/** out = (attended + x + norm(right(left(x)))) / sqrt(2). */
export function recordLaurel(rec: Recorder, weights: Laurel, ws: LaurelWorkspace, { x, attended, out, eps, rows }: LaurelStep): void {
  linear(rec, { x, weight: weights.left, out: ws.left, rows });
  linear(rec, { x: ws.left, weight: weights.right, out: ws.right, rows });
  add(rec, { a: attended, b: x, out: ws.sum, count: rows * (x.shape[1] ?? 0) });
  rmsNorm(rec, { x: ws.right, weight: weights.norm, residual: ws.sum, scale: Math.SQRT1_2, out, eps, rows });
}
