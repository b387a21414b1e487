import { assert } from '../errors.ts';
import { defineKernel } from '../gpu/kernel.ts';
import { foldedRows } from '../gpu/recorder.ts';
import type { Recorder } from '../gpu/recorder.ts';
import type { Tensor } from '../gpu/tensor.ts';
import { ceilDiv } from '../util/math.ts';
import { reduceFragment, reduceVariant } from './reduce.ts';

/** Pointwise functions that kernels can apply to their results; numbers as in shaders/lib/activation.wgsl. */
export const ACTIVATIONS = { none: 0, gelu: 1, gelu_tanh: 2, silu: 3, relu: 4, leaky_relu: 5, sigmoid: 6, tanh: 7, relu2: 8 } as const;

/** `leaky_relu` has slope 0.2; `relu2` is the square of ReLU. */
export type Activation = keyof typeof ACTIVATIONS;

const WG = 64;

export const ACTIVATE = defineKernel({
  file: 'activation/activate.wgsl',
  fragments: () => ['lib/grid.wgsl', 'lib/activation.wgsl'],
  bindings: { x: 'read', out: 'write' },
  params: { count: 'u32' },
  overrides: { WG: 'u32', ACTIVATION: 'u32' },
});

export interface ActivateArgs {
  readonly x: Tensor;
  readonly out: Tensor;
  readonly activation: Activation;
  /** Number of values to compute; default all. */
  readonly count?: number;
}

/** out[i] = f(x[i]). */
export function activate(rec: Recorder, { x, out, activation, count = x.size }: ActivateArgs): void {
  const overrides = { WG, ACTIVATION: ACTIVATIONS[activation] };
  rec.dispatch(ACTIVATE, { overrides }, { x, out }, { count }, [ceilDiv(count, WG)]);
}

export const GATE_MUL = defineKernel({
  file: 'activation/gate_mul.wgsl',
  fragments: () => ['lib/activation.wgsl', 'lib/activation_quad.wgsl'],
  bindings: { gate_up: 'read', out: 'write' },
  params: { columns4: 'u32', rows: 'u32' },
  overrides: { WG: 'u32', ACTIVATION: 'u32' },
});

export interface GateMulArgs {
  /** [T, 2 I], I a multiple of 4: gates, then ups. */
  readonly gateUp: Tensor;
  /** [T, I]. */
  readonly out: Tensor;
  readonly activation: Activation;
  /** Rows to compute; default all. */
  readonly rows?: number | undefined;
}

/** Params and grid of a kernel over a gated MLP's activations. */
function gateShape({ gateUp, out, rows }: Omit<GateMulArgs, 'activation'>): {
  readonly params: { columns4: number; rows: number };
  readonly grid: readonly number[];
} {
  const columns = out.shape[1] ?? 0;
  const count = rows ?? out.shape[0] ?? 0;
  assert(gateUp.shape[1] === 2 * columns, `gate_mul: gate_up has ${gateUp.shape[1]} columns, expected 2 x ${columns}`);
  assert(columns % 4 === 0, `gate_mul: ${columns} columns, expected a multiple of 4`);
  return { params: { columns4: columns / 4, rows: count }, grid: [ceilDiv(columns / 4, WG), ...foldedRows(count)] };
}

/** Gates a gated MLP's activations (Shazeer 2020, https://arxiv.org/abs/2002.05202): out[t, i] = f(gateUp[t, i]) * gateUp[t, I + i]. */
export function gateMul(rec: Recorder, { gateUp, out, activation, rows }: GateMulArgs): void {
  const { params, grid } = gateShape({ gateUp, out, rows });
  rec.dispatch(GATE_MUL, { overrides: { WG, ACTIVATION: ACTIVATIONS[activation] } }, { gate_up: gateUp, out }, params, grid);
}

export const GATE_SPARSE = defineKernel({
  file: 'activation/gate_sparse.wgsl',
  fragments: (v) => ['lib/grid.wgsl', 'lib/activation.wgsl', reduceFragment(v)],
  bindings: { gate_up: 'read', out: 'write' },
  params: { rows: 'u32', columns: 'u32', deviations: 'f32' },
  overrides: { WG: 'u32', ACTIVATION: 'u32' },
});

/**
 * gateMul with sparse gates (Gemma 3n): each gate is replaced by max(0, gate - cut), where cut is its row's mean plus `deviations` standard
 * deviations.
 */
export function gateSparse(
  rec: Recorder,
  { gateUp, out, activation, rows, deviations }: GateMulArgs & { readonly deviations: number },
): void {
  const { params } = gateShape({ gateUp, out, rows });
  const columns = 4 * params.columns4;
  const { wg, variant } = reduceVariant(rec.caps, columns);
  const overrides = { WG: wg, ACTIVATION: ACTIVATIONS[activation] };
  rec.dispatch(GATE_SPARSE, { ...variant, overrides }, { gate_up: gateUp, out }, { rows: params.rows, columns, deviations }, [params.rows]);
}

export const GATE_SLICE = defineKernel({
  file: 'activation/gate_slice.wgsl',
  fragments: () => ['lib/activation.wgsl'],
  bindings: { gate: 'read', x: 'read', out: 'write' },
  params: { columns4: 'u32', rows: 'u32', first4: 'u32', stride4: 'u32' },
  overrides: { WG: 'u32', ACTIVATION: 'u32' },
});

export interface GateSliceArgs {
  /** [T, I], I a multiple of 4. */
  readonly gate: Tensor;
  /** [T, N], of which columns [first, first + I) are gated; N and first multiples of 4. */
  readonly x: Tensor;
  readonly first: number;
  /** [T, I]. */
  readonly out: Tensor;
  readonly activation: Activation;
  readonly rows: number;
}

/** out[t, i] = f(gate[t, i]) * x[t, first + i] (Gemma 4's per-layer embeddings). */
export function gateSlice(rec: Recorder, { gate, x, first, out, activation, rows }: GateSliceArgs): void {
  const [columns = 0, stride = 0] = [gate.shape[1], x.shape[1]];
  assert([columns, stride, first].every((size) => size % 4 === 0), `gate_slice: columns ${first} to ${first + columns} of ${stride}, expected multiples of 4`); // prettier-ignore
  assert(out.shape[1] === columns && first + columns <= stride, `gate_slice: ${columns} columns from ${first} of ${stride} into ${out.shape[1]}`); // prettier-ignore
  const params = { columns4: columns / 4, rows, first4: first / 4, stride4: stride / 4 };
  rec.dispatch(GATE_SLICE, { overrides: { WG, ACTIVATION: ACTIVATIONS[activation] } }, { gate, x, out }, params, [ceilDiv(columns / 4, WG), rows]); // prettier-ignore
}

export const GATE_CLAMPED = defineKernel({
  file: 'activation/gate_clamped.wgsl',
  bindings: { gate_up: 'read', out: 'write' },
  params: { columns4: 'u32', rows: 'u32', alpha: 'f32', limit: 'f32' },
  overrides: { WG: 'u32', ALTERNATING: 'bool' },
});

/** Constants of gpt-oss's gate: the sigmoid's gain `alpha`, and `limit`, which gates and ups are clamped to. */
export interface Clamp {
  readonly alpha: number;
  readonly limit: number;
}

export interface GateClampedArgs extends Omit<GateMulArgs, 'activation'>, Clamp {
  /** Gate and up columns alternate; else all gates come before all ups. */
  readonly alternating: boolean;
}

/**
 * Gates gpt-oss's MLP activations: out[t, i] = (up + 1) * gate * sigmoid(alpha * gate), with ups clamped to [-limit, limit] and gates to at
 * most limit.
 */
export function gateClamped(rec: Recorder, { gateUp, out, rows, alternating, alpha, limit }: GateClampedArgs): void {
  const { params, grid } = gateShape({ gateUp, out, rows });
  rec.dispatch(GATE_CLAMPED, { overrides: { WG, ALTERNATING: alternating ? 1 : 0 } }, { gate_up: gateUp, out }, { ...params, alpha, limit }, grid); // prettier-ignore
}

export const MUL_SIGMOID = defineKernel({
  file: 'activation/mul_sigmoid.wgsl',
  fragments: () => ['lib/grid.wgsl'],
  bindings: { gate: 'read', x: 'update' },
  params: { count4: 'u32' },
  overrides: { WG: 'u32' },
});

/** x = x * sigmoid(gate) of the first `rows` rows, in place; x and gate [T, C], C a multiple of 4. */
export function mulSigmoid(rec: Recorder, { x, gate, rows }: { x: Tensor; gate: Tensor; rows: number }): void {
  const columns = x.shape[1] ?? 0;
  assert(gate.shape[1] === columns && columns % 4 === 0, `mul_sigmoid: gate has ${gate.shape[1]} columns, x ${columns}`);
  const count4 = (rows * columns) / 4;
  rec.dispatch(MUL_SIGMOID, { overrides: { WG } }, { gate, x }, { count4 }, [ceilDiv(count4, WG)]);
}

export const XIELU = defineKernel({
  file: 'activation/xielu.wgsl',
  fragments: () => ['lib/grid.wgsl'],
  bindings: { x: 'update' },
  params: { count: 'u32', alpha_p: 'f32', alpha_n: 'f32', beta: 'f32', eps: 'f32' },
  overrides: { WG: 'u32' },
});

/** What xIELU multiplies with above zero (`alphaP`) and below it (`alphaN`, up to `eps`, which is negative), and its slope at zero, `beta`. */
export interface XieluCurve {
  readonly alphaP: number;
  readonly alphaN: number;
  readonly beta: number;
  readonly eps: number;
}

/** x = xIELU(x) of the first `count` values, in place (https://arxiv.org/abs/2411.13010, Apertus's MLP). */
export function xielu(rec: Recorder, { x, count = x.size, alphaP, alphaN, beta, eps }: { x: Tensor; count?: number } & XieluCurve): void {
  rec.dispatch(XIELU, { overrides: { WG } }, { x }, { count, alpha_p: alphaP, alpha_n: alphaN, beta, eps }, [ceilDiv(count, WG)]);
}

export const SOFT_CAP = defineKernel({
  file: 'activation/soft_cap.wgsl',
  fragments: () => ['lib/grid.wgsl'],
  bindings: { x: 'update' },
  params: { count: 'u32', cap: 'f32' },
  overrides: { WG: 'u32' },
});

/** x = cap * tanh(x / cap) of the first `count` values, in place (Gemma 2's logits). */
export function softCap(rec: Recorder, { x, cap, count = x.size }: { x: Tensor; cap: number; count?: number }): void {
  rec.dispatch(SOFT_CAP, { overrides: { WG } }, { x }, { count, cap }, [ceilDiv(count, WG)]);
}
