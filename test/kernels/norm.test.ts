import { layerNorm, matchRms, rmsNorm } from '../../engine/ops/norm.ts';
import * as reference from '../reference/norm.ts';
import { describeKernels, randomTensor } from '../support/kernel-case.ts';
import type { KernelCase } from '../support/kernel-case.ts';

const EPS = 1e-5;

function normCase(kind: 'rms_norm' | 'layer_norm', rows: number, columns: number, withResidual = false, scale = 1): KernelCase {
  return {
    name: `${kind} handles ${rows} rows of ${columns} columns${withResidual ? ', with a residual' : ''}${scale === 1 ? '' : `, times ${scale}`}`,
    build(rng) {
      const x = randomTensor(rng, [rows, columns], 3);
      // An offset makes a one-pass variance lose its digits.
      for (let i = 0; i < x.values.length; i++) x.values[i]! += 10;
      const weight = randomTensor(rng, [columns]);
      const bias = randomTensor(rng, [columns]);
      const residual = randomTensor(rng, [rows, columns]);
      const normed = reference.rmsNorm(x.values, weight.values, rows, columns, EPS);
      return {
        inputs: { x, weight, bias, residual },
        outputs: { out: { dtype: 'f32', shape: [rows, columns] } },
        run(rec, t) {
          const args = { x: t['x']!, weight: t['weight']!, out: t['out']!, eps: EPS };
          if (kind === 'rms_norm') rmsNorm(rec, { ...args, scale, ...(withResidual && { residual: t['residual']! }) });
          else layerNorm(rec, { ...args, bias: t['bias']! });
        },
        expected: {
          out:
            kind === 'rms_norm'
              ? normed.map((value, i) => scale * (value + (withResidual ? residual.values[i]! : 0)))
              : reference.layerNorm(x.values, weight.values, bias.values, rows, columns, EPS),
        },
      };
    },
  };
}

const cases: KernelCase[] = [];
for (const kind of ['rms_norm', 'layer_norm'] as const) {
  for (const columns of [1, 3, 63, 64, 65, 257, 1024]) cases.push(normCase(kind, 3, columns));
  cases.push(normCase(kind, 1, 64), normCase(kind, 257, 32));
}
cases.push(normCase('rms_norm', 3, 257, true), normCase('rms_norm', 3, 65, true, 0.3), normCase('rms_norm', 3, 64, false, 2));

for (const [rows, columns, size, withResidual] of [
  [1, 1, 3, false],
  [3, 64, 3, true],
  [257, 36, 3, false],
  [3, 257, 1e-4, true],
] as const) {
  const floor = 1e-5;
  cases.push({
    name: `match_rms gives ${rows} rows of ${columns} columns, of about ${size}, the magnitude of others${withResidual ? ', with a residual' : ''}`,
    build(rng) {
      const x = randomTensor(rng, [rows, columns], size);
      const [like, residual] = [randomTensor(rng, [rows, columns], 2), randomTensor(rng, [rows, columns])];
      const matched = reference.matchRms(x.values, like.values, rows, columns, floor);
      return {
        inputs: { x, like, residual },
        outputs: { out: { dtype: 'f32', shape: [rows, columns] } },
        run: (rec, t) =>
          matchRms(rec, { x: t['x']!, like: t['like']!, residual: withResidual ? t['residual'] : undefined, out: t['out']!, floor, rows }),
        expected: { out: matched.map((value, i) => value + (withResidual ? residual.values[i]! : 0)) },
      };
    },
  });
}

describeKernels('norm', cases);
