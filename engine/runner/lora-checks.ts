/** Self-test cases of what LoRA adapters add to products. */
import type { Kernel } from '../gpu/kernel.ts';
import type { Activation } from '../ops/activation.ts';
import { LORA_ADD, LORA_EXPAND, LORA_GATE, LORA_SHRINK, addLora, loraColumns, uploadLora } from '../ops/lora.ts';
import * as plain from './plain.ts';
import { addLora as addPlainly } from './plain/lora.ts';
import { REDUCED_COLUMNS, activationOf } from './workbench.ts';
import type { CheckMaker, Workbench } from './workbench.ts';

/** Adapters of a check's rows: none, and both, in turn. */
const OF_ROWS = [1, 0, 2, 2];
/** Outputs of the segments, and each adapter's ranks in them; 0 = it does not change them. Gates and ups have as many. */
const OUTPUTS = [24, 8, 40];
const GATES = [24, 24];
const RANKS = [
  [5, 0, 13],
  [3, 8, 0],
];
const EPS = 1e-5;

/** A product of a variant, with as many inputs as lead to it. */
const checkLora =
  (kernel: Kernel): CheckMaker =>
  ({ overrides = {} }, bench) => {
    const isGated = kernel === LORA_GATE || overrides['GATED'] === 1;
    const k = kernel === LORA_SHRINK || kernel === LORA_ADD ? (REDUCED_COLUMNS[overrides['WG']!] ?? 64) : 64;
    const activation = isGated ? activationOf(overrides['ACTIVATION']) : undefined;
    return check(bench, { k, hasNorm: overrides['HAS_NORM'] === 1, activation });
  };

interface Checked {
  readonly k: number;
  readonly hasNorm: boolean;
  /** Of gates. */
  readonly activation: Activation | undefined;
}

function check(bench: Workbench, { k, hasNorm, activation }: Checked): ReturnType<CheckMaker> {
  const rows = OF_ROWS.length;
  const outputs = activation ? GATES : OUTPUTS;
  const n = outputs.reduce((sum, size) => sum + size, 0);
  const [x, out, norm] = [bench.floats([rows, k]), bench.floats([rows, n]), bench.floats([k])];
  const random = (size: number): Float32Array => Float32Array.from({ length: size }, () => bench.rng.normal() / 4);
  const made = RANKS.map((ranks) =>
    outputs.map((size, s) => (ranks[s]! > 0 ? { rank: ranks[s]!, a: random(ranks[s]! * k), b: random(size * ranks[s]!) } : undefined)),
  );
  const segments = outputs.map((outFeatures, s) => ({ outFeatures, loras: made.map((of) => of[s]) }));
  const weight = uploadLora(bench.device, 'check', k, segments);
  for (const tensor of [weight.table, weight.a, weight.b]) bench.keep(tensor);
  const loras = bench.words(OF_ROWS);
  const shrunk = bench.out([rows, loraColumns(Math.max(...RANKS.flat()))]);
  const gate = activation && { activation, out: bench.out([rows, n / 2]) };
  const input = { x: x.tensor, ...(hasNorm && { norm: norm.tensor, eps: EPS }) };
  const read = hasNorm ? plain.rmsNorm(x.values, norm.values, rows, k, EPS) : x.values;
  const sums = addPlainly(read, out.values, OF_ROWS, made, outputs, k);
  return {
    record: (rec) => addLora(rec, { input, weight, loras, shrunk, out: out.tensor, rows, gate }),
    out: gate?.out ?? out.tensor,
    expected: activation ? plain.gated(activation, sums, rows) : sums,
    tolerance: 1e-9,
  };
}

/** Checks by kernel. */
export const LORA_CHECKS: readonly (readonly [Kernel, CheckMaker])[] = [
  [LORA_ADD, checkLora(LORA_ADD)],
  [LORA_SHRINK, checkLora(LORA_SHRINK)],
  [LORA_EXPAND, checkLora(LORA_EXPAND)],
  [LORA_GATE, checkLora(LORA_GATE)],
];
