import {
  ACTIVATIONS,
  activate,
  gateClamped,
  gateMul,
  gateSlice,
  gateSparse,
  mulSigmoid,
  softCap,
  xielu,
} from '../../engine/ops/activation.ts';
import type { Activation } from '../../engine/ops/activation.ts';
import { add, mul } from '../../engine/ops/elementwise.ts';
import { embedding } from '../../engine/ops/embedding.ts';
import { packLinear } from '../../engine/ops/pack-linear.ts';
import { placeOf } from '../../engine/ops/weight-place.ts';
import { activation as activationReference, clampedGate, sparseGates, xielu as xieluReference } from '../reference/activation.ts';
import { embedding as embeddingReference } from '../reference/embedding.ts';
import { describeKernels, randomTensor, roundToF16 } from '../support/kernel-case.ts';
import type { KernelCase } from '../support/kernel-case.ts';

const SIZES = [1, 3, 63, 64, 65, 257];
const cases: KernelCase[] = [];

for (const kind of Object.keys(ACTIVATIONS) as Activation[]) {
  cases.push({
    name: `activate ${kind} over -12..12`,
    build() {
      const values = Float32Array.from({ length: 481 }, (_, i) => (i - 240) / 20);
      return {
        inputs: { x: { dtype: 'f32', shape: [values.length], values } },
        outputs: { out: { dtype: 'f32', shape: [values.length] } },
        run: (rec, t) => activate(rec, { x: t['x']!, out: t['out']!, activation: kind }),
        expected: { out: values.map((v) => activationReference(kind, v)) },
      };
    },
  });
}

for (const count of [1, 64, 65]) {
  cases.push({
    name: `activate the first ${count} of 130 values`,
    build(rng) {
      const x = randomTensor(rng, [130], 2);
      return {
        inputs: { x },
        outputs: { out: { dtype: 'f32', shape: [130], initial: new Float32Array(130) } },
        run: (rec, t) => activate(rec, { x: t['x']!, out: t['out']!, activation: 'leaky_relu', count }),
        // The rest stays as it was made.
        expected: { out: Float64Array.from(x.values, (v, i) => (i < count ? activationReference('leaky_relu', v) : 0)) },
      };
    },
  });
}

for (const [activation, columns] of [...SIZES.map((size) => ['silu', 4 * size] as const), ['gelu_tanh', 260] as const]) {
  cases.push({
    name: `gate_mul ${activation} gates 3 rows of ${columns}`,
    build(rng) {
      const gateUp = randomTensor(rng, [3, 2 * columns], 2);
      const expected = new Float64Array(3 * columns);
      for (let r = 0; r < 3; r++) {
        for (let c = 0; c < columns; c++) {
          const at = r * 2 * columns + c;
          expected[r * columns + c] = activationReference(activation, gateUp.values[at]!) * gateUp.values[at + columns]!;
        }
      }
      return {
        inputs: { gateUp },
        outputs: { out: { dtype: 'f32', shape: [3, columns] } },
        run: (rec, t) => gateMul(rec, { gateUp: t['gateUp']!, out: t['out']!, activation }),
        expected: { out: expected },
      };
    },
  });
}
for (const [rows, columns, deviations] of [
  [1, 4, 0],
  [3, 64, 1.64],
  [65, 260, 0.25],
  [3, 1028, -0.5],
] as const) {
  cases.push({
    name: `gate_sparse cuts the gates of ${rows} rows of ${columns} at ${deviations} deviations`,
    build(rng) {
      const gateUp = randomTensor(rng, [rows, 2 * columns], 2);
      const expected = Array.from({ length: rows }, (_, row) => {
        const values = [...gateUp.values.subarray(row * 2 * columns, (row + 1) * 2 * columns)].map(
          (value, i) => value + (i < columns ? 3 : 0),
        );
        gateUp.values.set(values, row * 2 * columns);
        const kept = [...gateUp.values.subarray(row * 2 * columns, (row * 2 + 1) * columns)];
        return sparseGates(kept, deviations).map((gate, i) => activationReference('gelu_tanh', gate) * values[columns + i]!);
      });
      return {
        inputs: { gateUp },
        outputs: { out: { dtype: 'f32', shape: [rows, columns] } },
        run: (rec, t) => gateSparse(rec, { gateUp: t['gateUp']!, out: t['out']!, activation: 'gelu_tanh', rows, deviations }),
        expected: { out: Float64Array.from(expected.flat()) },
      };
    },
  });
}

for (const [rows, columns, first, stride] of [[1, 4, 0, 4], [3, 12, 24, 36], [65, 260, 4, 520]] as const) {
  cases.push({
    name: `gate_slice lets ${rows} rows of columns ${first} to ${first + columns} of ${stride} through`,
    build(rng) {
      const [gate, x] = [randomTensor(rng, [rows, columns], 3), randomTensor(rng, [rows, stride])];
      const slice = (i: number): number => x.values[Math.floor(i / columns) * stride + first + (i % columns)]!;
      return {
        inputs: { gate, x },
        outputs: { out: { dtype: 'f32', shape: [rows, columns] } },
        run: (rec, t) => gateSlice(rec, { gate: t['gate']!, x: t['x']!, first, out: t['out']!, activation: 'gelu_tanh', rows }),
        expected: { out: Float64Array.from(gate.values, (value, i) => activationReference('gelu_tanh', value) * slice(i)) },
      };
    },
  });
} // prettier-ignore
for (const [columns, alternating] of [...SIZES.map((size) => [4 * size, true] as const), [260, false] as const]) {
  cases.push({
    name: `gate_clamped gates 3 rows of ${columns}${alternating ? ', gates and ups by turns' : ''}`,
    build(rng) {
      const gateUp = randomTensor(rng, [3, 2 * columns], 5);
      const clamp = { alpha: 1.702, limit: 7 };
      const at = (row: number, column: number): number => gateUp.values[row * 2 * columns + column]!;
      const expected = Float64Array.from({ length: 3 * columns }, (_, i) => {
        const [row, column] = [Math.floor(i / columns), i % columns];
        return alternating ? clampedGate(at(row, 2 * column), at(row, 2 * column + 1), clamp) : clampedGate(at(row, column), at(row, columns + column), clamp); // prettier-ignore
      });
      return {
        inputs: { gateUp },
        outputs: { out: { dtype: 'f32', shape: [3, columns] } },
        run: (rec, t) => gateClamped(rec, { gateUp: t['gateUp']!, out: t['out']!, alternating, ...clamp }),
        expected: { out: expected },
      };
    },
  });
}
cases.push({
  name: 'mul_sigmoid lets through what gates from -90 to 90 do, and leaves the rows behind',
  build(rng) {
    const x = randomTensor(rng, [5, 68]);
    const gate = randomTensor(rng, [5, 68], 30);
    return {
      inputs: { gate },
      outputs: { x: { dtype: 'f32', shape: [5, 68], initial: x.values } },
      run: (rec, t) => mulSigmoid(rec, { x: t['x']!, gate: t['gate']!, rows: 3 }),
      expected: {
        x: Float64Array.from(x.values, (value, i) => (i < 3 * 68 ? value * activationReference('sigmoid', gate.values[i]!) : value)),
      },
    };
  },
});
cases.push({
  name: 'soft_cap keeps values within 30 and leaves what is beyond the count',
  build() {
    const values = Float32Array.from({ length: 300 }, (_, i) => (i - 150) * 3);
    const count = 280;
    const capped = (value: number): number => 30 * Math.tanh(value / 30);
    return {
      inputs: { x: { dtype: 'f32', shape: [values.length], values } },
      outputs: { out: { dtype: 'f32', shape: [values.length] } },
      run(rec, t) {
        softCap(rec, { x: t['x']!, cap: 30, count });
        rec.copy(t['x']!, t['out']!, values.length * 4);
      },
      expected: { out: Float64Array.from(values, (value, i) => (i < count ? capped(value) : value)) },
    };
  },
});
for (const count of SIZES) {
  for (const curve of [
    { alphaP: 0.8, alphaN: 0.9, beta: 0.5, eps: -1e-6 },
    { alphaP: 1.75, alphaN: 3.5, beta: 0.25, eps: -0.3 },
  ]) {
    cases.push({
      name: `xielu bends ${count} of ${count + 5} values from -12 to 12, and values near 0, with eps ${curve.eps}`,
      build(rng) {
        const x = randomTensor(rng, [count + 5], 12);
        // Where the exponential less one is next to nothing.
        x.values.forEach((value, i) => i % 3 === 1 && (x.values[i] = value / 1000));
        return {
          inputs: {},
          outputs: { x: { dtype: 'f32', shape: [count + 5], initial: x.values } },
          run: (rec, t) => xielu(rec, { x: t['x']!, ...curve, count }),
          expected: { x: Float64Array.from(x.values, (value, i) => (i < count ? xieluReference(value, curve) : value)) },
        };
      },
    });
  }
}
for (const columns of SIZES) {
  for (const [name, op] of [
    ['add', add],
    ['mul', mul],
  ] as const) {
    for (const broadcast of [false, true]) {
      cases.push({
        name: `${name} over 3 rows of ${columns}${broadcast ? ' with a broadcast row' : ''}`,
        build(rng) {
          const a = randomTensor(rng, [3, columns]);
          const b = randomTensor(rng, broadcast ? [columns] : [3, columns]);
          const expected = a.values.map((v, i) =>
            name === 'add' ? v + b.values[i % b.values.length]! : v * b.values[i % b.values.length]!,
          );
          return {
            inputs: { a, b },
            outputs: { out: { dtype: 'f32', shape: [3, columns] } },
            run: (rec, t) => op(rec, { a: t['a']!, b: t['b']!, out: t['out']! }),
            expected: { out: expected },
          };
        },
      });
    }
  }
}

for (const dtype of ['f32', 'f16'] as const) {
  for (const count of SIZES) {
    cases.push({
      name: `embedding ${dtype} looks up ${count} of 37 rows, with positions`,
      build(rng) {
        const columns = 20;
        const table = randomTensor(rng, [37, columns]);
        const positions = randomTensor(rng, [11, columns]);
        const places = Uint32Array.from({ length: count }, () => rng.integer(11));
        const ids = Uint32Array.from({ length: count }, () => rng.integer(37));
        const looked = embeddingReference(ids, dtype === 'f16' ? roundToF16(table.values) : table.values, columns);
        return {
          inputs: {
            ids: { dtype: 'u32', shape: [count], values: ids },
            positions,
            places: { dtype: 'u32', shape: [count], values: places },
          },
          outputs: { out: { dtype: 'f32', shape: [count, columns] } },
          run(rec, t, device) {
            const packed = packLinear(device, 'table', table.values, 37, columns, dtype, placeOf(device.caps, dtype, Infinity));
            embedding(rec, { ids: t['ids']!, table: packed, positions: { table: t['positions']!, places: t['places']! }, out: t['out']! });
          },
          expected: { out: looked.map((v, i) => v + positions.values[places[Math.floor(i / columns)]! * columns + (i % columns)]!) },
        };
      },
    });
  }
}

cases.push({
  name: 'embedding with a slice of the vocabulary, a scale and positions gives zeros for the other tokens',
  build(rng) {
    const columns = 20;
    const table = randomTensor(rng, [37, columns]);
    const [from, to] = [32, 32 + 37];
    const ids = Uint32Array.from([0, 31, 32, 50, 68, 69, 1000, 33]);
    const positions = randomTensor(rng, [3, columns]);
    const places = Uint32Array.from([0, 1, 2, 0, 1, 2, 0, 1]);
    const looked = Float64Array.from({ length: ids.length * columns }, (_, i) => {
      const id = ids[Math.floor(i / columns)]!;
      return id >= from && id < to
        ? 2.5 * table.values[(id - from) * columns + (i % columns)]! +
            positions.values[places[Math.floor(i / columns)]! * columns + (i % columns)]!
        : 0;
    });
    return {
      inputs: {
        ids: { dtype: 'u32', shape: [ids.length], values: ids },
        positions,
        places: { dtype: 'u32', shape: [ids.length], values: places },
      },
      outputs: { out: { dtype: 'f32', shape: [ids.length, columns] } },
      run(rec, t, device) {
        const packed = packLinear(device, 'table', table.values, 37, columns);
        embedding(rec, {
          ids: t['ids']!,
          table: packed,
          positions: { table: t['positions']!, places: t['places']! },
          firstId: from,
          scale: 2.5,
          out: t['out']!,
        });
      },
      expected: { out: looked },
    };
  },
});

describeKernels('pointwise', cases);
