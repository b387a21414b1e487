import { LORA_ADD, LORA_EXPAND, LORA_GATE, LORA_SHRINK, addLora, loraColumns, uploadLora } from '../../engine/ops/lora.ts';
import type { Activation } from '../../engine/ops/activation.ts';
import { gated } from '../reference/activation.ts';
import * as reference from '../reference/lora.ts';
import { rmsNorm } from '../reference/norm.ts';
import { describeKernels, randomTensor } from '../support/kernel-case.ts';
import type { KernelCase, OutputSpec } from '../support/kernel-case.ts';

const EPS = 1e-5;

interface Shape {
  /** Adapter of each row, 0 for none. */
  readonly rows: readonly number[];
  readonly k: number;
  readonly outputs: readonly number[];
  /** Ranks of each adapter by segment, 0 where it changes nothing. */
  readonly ranks: readonly (readonly number[])[];
  /** Rows pass an RMS norm first. */
  readonly hasNorm?: boolean;
  /** Of outputs that are gates and ups. */
  readonly activation?: Activation;
}

function loraCase(name: string, { rows, k, outputs, ranks, hasNorm = false, activation }: Shape): KernelCase {
  const behind = `${hasNorm ? ' behind a norm' : ''}${activation ? ` and ${activation} of ${outputs.join(' and ')} outputs` : ''}`;
  return {
    name: `${name}: ${rows.length} rows of ${k} columns${behind} by adapters of rank ${ranks.map((of) => of.join(' and ')).join('; ')}`,
    build(rng) {
      const n = outputs.reduce((sum, size) => sum + size, 0);
      const [x, before, norm] = [randomTensor(rng, [rows.length, k]), randomTensor(rng, [rows.length, n]), randomTensor(rng, [k])];
      const values = (size: number): Float32Array => randomTensor(rng, [size], 0.5).values;
      const made = ranks.map((of) =>
        of.map((rank, s) => (rank > 0 ? { rank, a: values(rank * k), b: values(outputs[s]! * rank) } : undefined)),
      );
      const most = Math.max(...ranks.flat());
      const shape = [rows.length, loraColumns(most)];
      const read = hasNorm ? rmsNorm(x.values, norm.values, rows.length, k, EPS) : x.values;
      const sums = reference.addLora(read, before.values, rows, made, outputs, k);
      // Behind a gate the product is scratch.
      const out: OutputSpec = { dtype: 'f32', shape: [rows.length, n], initial: before.values };
      const inputs = {
        x,
        norm,
        loras: { dtype: 'u32', shape: [rows.length], values: rows },
        shrunk: { dtype: 'f32', shape, values: new Float32Array(rows.length * shape[1]!).fill(NaN) },
      } as const;
      return {
        inputs: activation ? { ...inputs, out: before } : inputs,
        outputs: activation ? { activated: { dtype: 'f32', shape: [rows.length, n / 2] } } : { out },
        run(rec, t, device) {
          const segments = outputs.map((outFeatures, s) => ({ outFeatures, loras: made.map((of) => of[s]) }));
          const weight = uploadLora(device, 'lora', k, segments);
          const input = { x: t['x']!, ...(hasNorm && { norm: t['norm']!, eps: EPS }) };
          const gate = activation && { activation, out: t['activated']! };
          addLora(rec, { input, weight, loras: t['loras']!, shrunk: t['shrunk']!, out: t['out']!, rows: rows.length, gate });
        },
        expected: activation ? { activated: gated(activation, sums, rows.length) } : { out: sums },
      };
    },
  };
}

const mixed = (count: number): readonly number[] => Array.from({ length: count }, (_, i) => [1, 0, 2][i % 3]!);
const [ADD, SHRINK, EXPAND, GATE] = [LORA_ADD.name, LORA_SHRINK.name, LORA_EXPAND.name, LORA_GATE.name];
const cases: KernelCase[] = [];
for (const k of [4, 64, 68, 256, 1100]) {
  for (const hasNorm of [false, true]) cases.push(loraCase(SHRINK, { rows: [1, 0, 2], k, outputs: [16], ranks: [[8], [3]], hasNorm }));
}
for (const count of [1, 3, 63, 64, 65, 257]) {
  cases.push(loraCase(SHRINK, { rows: mixed(count), k: 36, outputs: [24, 8, 8], ranks: [[4, 4, 4], [7, 0, 1]], hasNorm: true })); // prettier-ignore
}
for (const n of [4, 60, 64, 260, 1028]) {
  cases.push(loraCase(EXPAND, { rows: [2, 0, 1, 1], k: 32, outputs: [n], ranks: [[1], [16]] }));
}
cases.push(
  loraCase(EXPAND, { rows: mixed(5), k: 32, outputs: [20, 12], ranks: [[5, 9], [0, 2]] }), // prettier-ignore
  loraCase(EXPAND, { rows: mixed(5), k: 32, outputs: [64, 16, 16], ranks: [[0, 0, 6], [64, 64, 64]] }), // prettier-ignore
  loraCase(EXPAND, { rows: [0, 0, 0], k: 32, outputs: [8], ranks: [[4]] }),
);
for (const i of [4, 60, 64, 260]) {
  cases.push(loraCase(GATE, { rows: mixed(5), k: 32, outputs: [i, i], ranks: [[5, 9], [0, 2]], hasNorm: true, activation: 'silu' })); // prettier-ignore
}
cases.push(
  loraCase(GATE, { rows: [1, 0], k: 32, outputs: [64, 64], ranks: [[4, 0]], activation: 'gelu_tanh' }),
  // Stacked in one matrix.
  loraCase(GATE, { rows: mixed(3), k: 32, outputs: [72], ranks: [[4], [7]], hasNorm: true, activation: 'silu' }),
);
// Single rows, whose columns several workgroups share, and odd numbers of quads.
for (const rank of [1, 4, 5, 8, 9, 20]) {
  cases.push(loraCase(ADD, { rows: [1], k: 44, outputs: [300, 300], ranks: [[rank, rank]], hasNorm: true, activation: 'silu' }));
  cases.push(loraCase(ADD, { rows: [1], k: 60, outputs: [260, 4, 36], ranks: [[rank, 4, rank]] }));
}

describeKernels('lora', cases);
