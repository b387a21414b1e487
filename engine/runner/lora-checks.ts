/** Self-test cases of what LoRA adapters add to products. */
import type { Kernel } from '../gpu/kernel.ts';
import { LORA_EXPAND, LORA_SHRINK, addLora, loraColumns, uploadLora } from '../ops/lora.ts';
import * as plain from './plain/lora.ts';
import { REDUCED_COLUMNS } from './workbench.ts';
import type { CheckMaker, Workbench } from './workbench.ts';

/** Adapters of a check's rows: none, and both, in turn. */
const OF_ROWS = [1, 0, 2, 2];
/** Outputs of the segments, and each adapter's ranks in them; 0 = it does not change them. */
const OUTPUTS = [24, 8, 40];
const RANKS = [
  [5, 0, 5],
  [3, 8, 0],
];

/** A product of both kernels, with as many inputs as lead to a variant of the first. */
const checkLora =
  (kernel: Kernel): CheckMaker =>
  ({ overrides = {} }, bench) =>
    check(bench, kernel === LORA_SHRINK ? (REDUCED_COLUMNS[overrides['WG']!] ?? 64) : 64);

function check(bench: Workbench, k: number): ReturnType<CheckMaker> {
  const rows = OF_ROWS.length;
  const n = OUTPUTS.reduce((sum, size) => sum + size, 0);
  const [x, out] = [bench.floats([rows, k]), bench.floats([rows, n])];
  const random = (size: number): Float32Array => Float32Array.from({ length: size }, () => bench.rng.normal() / 4);
  const made = RANKS.map((ranks) =>
    ranks.map((rank, s) => (rank > 0 ? { rank, a: random(rank * k), b: random(OUTPUTS[s]! * rank) } : undefined)),
  );
  const segments = OUTPUTS.map((outFeatures, s) => ({ outFeatures, loras: made.map((of) => of[s]) }));
  const weight = uploadLora(bench.device, 'check', k, segments);
  for (const tensor of [weight.table, weight.a, weight.b]) bench.keep(tensor);
  const loras = bench.words(OF_ROWS);
  const shrunk = bench.out([rows, loraColumns(Math.max(...RANKS.flat()))]);
  return {
    record: (rec) => addLora(rec, { x: x.tensor, weight, loras, shrunk, out: out.tensor, rows }),
    out: out.tensor,
    expected: plain.addLora(x.values, out.values, OF_ROWS, made, OUTPUTS, k),
    tolerance: 1e-9,
  };
}

/** Checks by kernel. */
export const LORA_CHECKS: readonly (readonly [Kernel, CheckMaker])[] = [
  [LORA_SHRINK, checkLora(LORA_SHRINK)],
  [LORA_EXPAND, checkLora(LORA_EXPAND)],
];
