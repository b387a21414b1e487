import { alignmentMatrix, attentionWeights } from '../../engine/ops/alignment.ts';
import { inTexels } from '../../engine/ops/texels.ts';
import * as reference from '../reference/alignment.ts';
import { describeKernels, randomTensor } from '../support/kernel-case.ts';
import type { KernelCase } from '../support/kernel-case.ts';

/** Some rows of one head, into a place among others' weights, which stay NaN. */
function weightsCase(count: number, keys: number, headDim: number, { scale = 1, texels = false } = {}): KernelCase {
  const [heads, head] = [3, 1];
  const width = heads * headDim;
  const rows = { first: 2, count };
  const among = { first: 5, count: keys };
  const [positions, most] = [keys + 4, count + 3];
  return {
    name: `attention_weights handles ${count} rows, ${keys} keys, heads of ${headDim} channels, scores times ${scale}${texels ? ', keys in a texture' : ''}`,
    build(rng) {
      const q = randomTensor(rng, [rows.first + count, width], scale);
      const k = randomTensor(rng, [among.first + keys, 2 * width]);
      const found = reference.attentionWeights({
        q: q.values,
        k: k.values,
        strides: { q: width, k: 2 * width },
        head,
        headDim,
        rows,
        keys: among,
      });
      const initial = new Float32Array(2 * most * positions).fill(0.5);
      const expected = Float64Array.from(initial);
      found.forEach((row, t) => expected.set(row, (most + 3 + t) * positions));
      return {
        inputs: { q, k },
        outputs: { weights: { dtype: 'f32', shape: [2, most, positions], initial } },
        run: (rec, t, device) =>
          attentionWeights(rec, {
            q: t['q']!,
            k: texels && rec.caps.maxTexels > 0 ? inTexels(device, t['k']!) : t['k']!,
            head,
            headDim,
            rows,
            keys: among,
            weights: t['weights']!,
            to: { head: 1, row: 3 },
          }),
        expected: { weights: expected },
      };
    },
  };
}

/** `flat`: one position has the same weight in all rows, so no deviation. */
function matrixCase(heads: number, rows: number, columns: number, flat = false): KernelCase {
  const [most, positions] = [rows + 2, columns + 5];
  return {
    name: `alignment_matrix handles ${heads} heads, ${rows} rows, ${columns} positions${flat ? ', one of them flat' : ''}`,
    tolerance: 1e-6,
    build(rng) {
      const weights = randomTensor(rng, [heads, most, positions]);
      for (let i = 0; i < weights.values.length; i++) weights.values[i] = weights.values[i]! ** 2;
      if (flat) for (let h = 0; h < heads; h++) for (let t = 0; t < most; t++) weights.values[(h * most + t) * positions + 4] = 0.25;
      const at = (h: number, t: number): number[] => [...weights.values.subarray((h * most + t) * positions).subarray(0, columns)];
      const wanted = Array.from({ length: heads }, (_, h) => Array.from({ length: rows }, (_, t) => at(h, t)));
      return {
        inputs: { weights, stats: { dtype: 'f32', shape: [heads, positions, 2], values: new Float32Array(heads * positions * 2) } },
        outputs: { out: { dtype: 'f32', shape: [rows, columns] } },
        run: (rec, t) => alignmentMatrix(rec, { weights: t['weights']!, stats: t['stats']!, out: t['out']!, heads, rows, columns }),
        expected: { out: reference.alignmentMatrix(wanted).flat() },
      };
    },
  };
}

describeKernels('alignment', [
  weightsCase(1, 1, 4),
  weightsCase(3, 65, 20),
  weightsCase(3, 65, 20, { texels: true }),
  // Scores of +-60 and more: an overflow of exp or a wrong maximum shows.
  weightsCase(5, 257, 64, { scale: 8 }),
  matrixCase(1, 2, 3),
  matrixCase(3, 5, 4),
  matrixCase(2, 9, 65, true),
  matrixCase(8, 40, 257),
]);
