import { LORA_EXPAND, LORA_SHRINK, addLora, loraColumns, uploadLora } from '../../engine/ops/lora.ts';
import * as reference from '../reference/lora.ts';
import { describeKernels, randomTensor } from '../support/kernel-case.ts';
import type { KernelCase } from '../support/kernel-case.ts';

interface Shape {
  /** Adapter of each row, 0 for none. */
  readonly rows: readonly number[];
  readonly k: number;
  readonly outputs: readonly number[];
  /** Ranks of each adapter by segment, 0 where it changes nothing. */
  readonly ranks: readonly (readonly number[])[];
}

function loraCase(name: string, { rows, k, outputs, ranks }: Shape): KernelCase {
  return {
    name: `${name}: ${rows.length} rows of ${k} columns by adapters of rank ${ranks.map((of) => of.join(' and ')).join('; ')}`,
    build(rng) {
      const n = outputs.reduce((sum, size) => sum + size, 0);
      const [x, before] = [randomTensor(rng, [rows.length, k]), randomTensor(rng, [rows.length, n])];
      const values = (size: number): Float32Array => randomTensor(rng, [size], 0.5).values;
      const made = ranks.map((of) =>
        of.map((rank, s) => (rank > 0 ? { rank, a: values(rank * k), b: values(outputs[s]! * rank) } : undefined)),
      );
      const most = Math.max(...ranks.flat());
      return {
        inputs: {
          x,
          loras: { dtype: 'u32', shape: [rows.length], values: rows },
          shrunk: {
            dtype: 'f32',
            shape: [rows.length, loraColumns(most)],
            values: new Float32Array(rows.length * loraColumns(most)).fill(NaN),
          },
        },
        outputs: { out: { dtype: 'f32', shape: [rows.length, n], initial: before.values } },
        run(rec, t, device) {
          const segments = outputs.map((outFeatures, s) => ({ outFeatures, loras: made.map((of) => of[s]) }));
          const weight = uploadLora(device, 'lora', k, segments);
          addLora(rec, { x: t['x']!, weight, loras: t['loras']!, shrunk: t['shrunk']!, out: t['out']!, rows: rows.length });
        },
        expected: { out: reference.addLora(x.values, before.values, rows, made, outputs, k) },
      };
    },
  };
}

const mixed = (count: number): readonly number[] => Array.from({ length: count }, (_, i) => [1, 0, 2][i % 3]!);
const [SHRINK, EXPAND] = [LORA_SHRINK.name, LORA_EXPAND.name];
const cases: KernelCase[] = [];
for (const k of [4, 64, 68, 256, 1100]) {
  cases.push(loraCase(SHRINK, { rows: [1, 0, 2], k, outputs: [16], ranks: [[8], [3]] }));
}
for (const count of [1, 3, 63, 64, 65, 257]) {
  cases.push(loraCase(SHRINK, { rows: mixed(count), k: 36, outputs: [24, 8, 8], ranks: [[4, 4, 4], [7, 0, 1]] })); // prettier-ignore
}
for (const n of [4, 60, 64, 260, 1028]) {
  cases.push(loraCase(EXPAND, { rows: [2, 0, 1, 1], k: 32, outputs: [n], ranks: [[1], [16]] }));
}
cases.push(
  loraCase(EXPAND, { rows: mixed(5), k: 32, outputs: [20, 12], ranks: [[5, 9], [0, 2]] }), // prettier-ignore
  loraCase(EXPAND, { rows: mixed(5), k: 32, outputs: [64, 16, 16], ranks: [[0, 0, 6], [64, 64, 64]] }), // prettier-ignore
  loraCase(EXPAND, { rows: [0, 0, 0], k: 32, outputs: [8], ranks: [[4]] }),
);

describeKernels('lora', cases);
