import { assert } from '../errors.ts';
import { defineKernel } from '../gpu/kernel.ts';
import type { Recorder } from '../gpu/recorder.ts';
import type { Tensor } from '../gpu/tensor.ts';
import { ceilDiv } from '../util/math.ts';

/** Pointwise functions that other kernels can apply to what they produce; numbers as in shaders/lib/activation.wgsl. */
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

/** out[i] = f(x[i]). */
export function activate(rec: Recorder, { x, out, activation }: { x: Tensor; out: Tensor; activation: Activation }): void {
  const count = x.size;
  const overrides = { WG, ACTIVATION: ACTIVATIONS[activation] };
  rec.dispatch(ACTIVATE, { overrides }, { x, out }, { count }, [ceilDiv(count, WG)]);
}

export const SILU_MUL = defineKernel({
  file: 'activation/silu_mul.wgsl',
  bindings: { gate_up: 'read', out: 'write' },
  params: { columns4: 'u32' },
  overrides: { WG: 'u32' },
});

/** SwiGLU's middle: out[t, i] = silu(gateUp[t, i]) * gateUp[t, I + i]; gateUp [T, 2 I], out [T, I], I a multiple of 4. */
export function siluMul(rec: Recorder, { gateUp, out, rows }: { gateUp: Tensor; out: Tensor; rows?: number }): void {
  const columns = out.shape[1] ?? 0;
  const count = rows ?? out.shape[0] ?? 0;
  assert(gateUp.shape[1] === 2 * columns, `silu_mul: gate_up has ${gateUp.shape[1]} columns, expected 2 x ${columns}`);
  assert(columns % 4 === 0, `silu_mul: ${columns} columns, expected a multiple of 4`);
  rec.dispatch(SILU_MUL, { overrides: { WG } }, { gate_up: gateUp, out }, { columns4: columns / 4 }, [ceilDiv(columns / 4, WG), count]);
}
