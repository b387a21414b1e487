import { assert } from '../errors.ts';
import { defineKernel } from '../gpu/kernel.ts';
import type { Recorder } from '../gpu/recorder.ts';
import type { Tensor } from '../gpu/tensor.ts';
import { ceilDiv } from '../util/math.ts';

const WG = 64;
const OPS = { add: 0, mul: 1 } as const;

export const BINARY = defineKernel({
  file: 'elementwise/binary.wgsl',
  fragments: () => ['lib/grid.wgsl'],
  bindings: { a: 'read', b: 'read', out: 'write' },
  params: { count: 'u32', period: 'u32' },
  overrides: { WG: 'u32', OP: 'u32' },
});

export interface BinaryArgs {
  readonly a: Tensor;
  /** As many values as `a`, or as one row of it, which is then broadcast. */
  readonly b: Tensor;
  /** Another tensor than a and b. */
  readonly out: Tensor;
  /** Elements to compute; default all of a. */
  readonly count?: number;
}

function binary(rec: Recorder, op: keyof typeof OPS, { a, b, out, count = a.size }: BinaryArgs): void {
  const period = Math.min(b.size, a.size);
  assert(a.size % period === 0, `${op}: ${b.label} (${b.size}) does not repeat over ${a.label} (${a.size})`);
  rec.dispatch(BINARY, { overrides: { WG, OP: OPS[op] } }, { a, b, out }, { count, period }, [ceilDiv(count, WG)]);
}

/** out = a + b. */
export function add(rec: Recorder, args: BinaryArgs): void {
  binary(rec, 'add', args);
}

/** out = a * b. */
export function mul(rec: Recorder, args: BinaryArgs): void {
  binary(rec, 'mul', args);
}
