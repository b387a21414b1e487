/**
 * Kernels of recurrent layers, whose memory of a sequence has a fixed size: a short convolution, the gated delta rule and the selective
 * scan. They process spans of rows, and update the state of each span's sequence.
 */
import { assert } from '../errors.ts';
import type { Caps } from '../gpu/caps.ts';
import { defineKernel } from '../gpu/kernel.ts';
import type { Variant } from '../gpu/kernel.ts';
import type { Recorder } from '../gpu/recorder.ts';
import type { Tensor } from '../gpu/tensor.ts';
import { ceilDiv } from '../util/math.ts';
import { lanesOf } from './lanes.ts';
import { reduceFragment, reduceVariant } from './reduce.ts';
import type { StateLayer } from './states.ts';

const WG = 64;
/** Workgroup size on software adapters: one SIMD register. */
const CPU_WG = 8;

export const CAUSAL_CONV = defineKernel({
  file: 'recurrent/causal_conv.wgsl',
  fragments: () => ['lib/spans.wgsl'],
  consts: ['TAPS'],
  bindings: { x: 'read', weight: 'read', spans: 'read', tails: 'update', out: 'write' },
  params: { channels4: 'u32', x_stride4: 'u32' },
  overrides: { WG: 'u32', GATED: 'bool', HAS_BIAS: 'bool' },
});

/** Constants of kernels that hold rows of a state matrix in registers. */
const STATE_CONSTS = ['LANES', 'D4', 'SLICES', 'COLUMNS4', 'SUMS'];

/** Their fragments. */
const stateFragments = ({ subgroups }: Variant): readonly string[] => [
  'lib/spans.wgsl',
  'lib/state_rows.wgsl',
  'lib/softplus.wgsl',
  subgroups ? 'lib/lane_sums_subgroup.wgsl' : 'lib/lane_sums.wgsl',
];

export const GATED_DELTA_RULE = defineKernel({
  file: 'recurrent/gated_delta_rule.wgsl',
  fragments: stateFragments,
  consts: STATE_CONSTS,
  bindings: { qkv: 'read', gates: 'read', decay: 'read', spans: 'read', states: 'update', out: 'write' },
  params: {
    heads: 'u32',
    key_heads: 'u32',
    group: 'u32',
    values4: 'u32',
    k_first4: 'u32',
    v_first4: 'u32',
    qkv_stride4: 'u32',
    gate_stride: 'u32',
    beta_column: 'u32',
    alpha_column: 'u32',
    scale: 'f32',
    lanes: 'u32',
  },
});

export const SELECTIVE_SCAN = defineKernel({
  file: 'recurrent/selective_scan.wgsl',
  fragments: stateFragments,
  consts: STATE_CONSTS,
  bindings: { xbc: 'read', steps: 'read', of_heads: 'read', spans: 'read', states: 'update', out: 'write' },
  params: {
    heads: 'u32',
    group: 'u32',
    values4: 'u32',
    b_first4: 'u32',
    c_first4: 'u32',
    xbc_stride4: 'u32',
    step_stride: 'u32',
    step_column: 'u32',
    lanes: 'u32',
  },
});

export const RMS_NORM_GATED = defineKernel({
  file: 'norm/rms_norm_gated.wgsl',
  fragments: (v) => ['lib/grid.wgsl', reduceFragment(v)],
  bindings: { x: 'read', weight: 'read', gate: 'read', out: 'write' },
  params: { rows: 'u32', heads: 'u32', columns: 'u32', weight_stride: 'u32', gate_stride: 'u32', gate_column: 'u32', eps: 'f32' },
  overrides: { WG: 'u32', GATE_FIRST: 'bool' },
});

/** Spans: runs of rows of one sequence each. */
export interface Spans {
  /** [spans, SPAN_WORDS] u32 (ops/states.ts). */
  readonly words: Tensor;
  readonly count: number;
}

export interface CausalConvArgs {
  /** [T, C or wider] f32, of which the first C columns are read; for a gated convolution [T, 3 C]. Widths are multiples of 4. */
  readonly x: Tensor;
  /** x has C columns each of b, g and i: b * i is convolved, and out = g * that (LFM2) instead of silu(that). */
  readonly gated?: boolean;
  /** [taps, C]; with a bias, that is a row more. */
  readonly weight: Tensor;
  readonly hasBias?: boolean;
  readonly spans: Spans;
  readonly state: StateLayer;
  /** [T, C]. */
  readonly out: Tensor;
}

/** out = silu(causal depthwise convolution of x + bias), over each span and the inputs that its sequence had before. */
export function causalConv(rec: Recorder, { x, gated = false, weight, hasBias = false, spans, state, out }: CausalConvArgs): void {
  const [rows = 0, channels = 0] = weight.shape;
  const stride = x.shape[1] ?? 0;
  assert(channels % 4 === 0 && stride % 4 === 0 && out.shape[1] === channels, `causal_conv: ${channels} of ${stride} channels into ${out.shape[1]}`); // prettier-ignore
  assert(!gated || stride === 3 * channels, `causal_conv: ${stride} columns of a gated convolution of ${channels} channels`);
  const wg = rec.caps.family === 'cpu' ? CPU_WG : WG;
  const bindings = { x, weight, spans: spans.words, tails: state.tail, out };
  const params = { channels4: channels / 4, x_stride4: stride / 4 };
  const overrides = { WG: wg, GATED: gated ? 1 : 0, HAS_BIAS: hasBias ? 1 : 0 };
  const variant = { consts: { TAPS: hasBias ? rows - 1 : rows }, overrides };
  rec.dispatch(CAUSAL_CONV, variant, bindings, params, [ceilDiv(channels / 4, wg), spans.count]);
}

/**
 * vec4s of the state that an invocation holds. More of them share the loads of a row, but spill registers; software adapters take long to
 * compile many.
 */
const MAX_VECTORS = 16;
const MOST_COLUMNS4 = { cpu: 1, generic: 2 } as const;

/**
 * Lanes that share a row of a state matrix, and groups of four rows per workgroup; `sums` is the number of vec4s that the lanes add up for
 * so many groups.
 */
function stateVariant(caps: Caps, keyDim: number, sums: (columns4: number) => number) {
  const { lanes, variant: subgroups } = lanesOf(caps);
  const d4 = keyDim / 4;
  const slices = ceilDiv(d4, lanes);
  const columns4 = Math.max(1, Math.min(MOST_COLUMNS4[caps.family], Math.floor(MAX_VECTORS / 4 / slices)));
  return {
    columns4,
    variant: { ...subgroups, consts: { LANES: lanes, D4: d4, SLICES: slices, COLUMNS4: columns4, SUMS: sums(columns4) } },
  };
}

export interface GatedDeltaRuleArgs {
  /** [T, 2 Hk Dk + Hv Dv] f32: heads of queries, then of keys, then of values. */
  readonly qkv: Tensor;
  readonly keyHeads: number;
  readonly heads: number;
  /** Dk and Dv, multiples of 4. */
  readonly keyDim: number;
  readonly valueDim: number;
  /** Value head h uses key head h mod Hk; by default consecutive value heads share a key head. */
  readonly isTiled?: boolean | undefined;
  /**
   * [T, ...] with Hv columns from `betaColumn` on, whose sigmoid is how much a row changes the state; and Hv columns from `alphaColumn` on,
   * how much of it is forgotten.
   */
  readonly gates: Tensor;
  readonly betaColumn: number;
  readonly alphaColumn: number;
  /** [2, Hv]: -exp(A_log), dt_bias. */
  readonly decay: Tensor;
  readonly spans: Spans;
  readonly state: StateLayer;
  /** [T, Hv Dv]. */
  readonly out: Tensor;
}

/** The gated delta rule: each row decays and updates the state of its sequence; out = the updated state applied to the row's query. */
export function gatedDeltaRule(rec: Recorder, args: GatedDeltaRuleArgs): void {
  const { qkv, keyHeads, heads, keyDim, valueDim, isTiled = false, gates, betaColumn, alphaColumn, decay, spans, state, out } = args;
  const keys = keyHeads * keyDim;
  assert(heads % keyHeads === 0 && keyDim % 4 === 0 && valueDim % 4 === 0, `gated_delta_rule: ${heads} heads of ${valueDim} over ${keyHeads} of ${keyDim}`); // prettier-ignore
  assert(qkv.shape[1] === 2 * keys + heads * valueDim && out.shape[1] === heads * valueDim, `gated_delta_rule: ${qkv.label} [${qkv.shape.join(', ')}]`); // prettier-ignore
  const { columns4, variant } = stateVariant(rec.caps, keyDim, (columns4) => 1 + 2 * columns4);
  const params = {
    heads,
    key_heads: keyHeads,
    group: isTiled ? 1 : heads / keyHeads,
    values4: valueDim / 4,
    k_first4: keys / 4,
    v_first4: keys / 2,
    qkv_stride4: qkv.shape[1] / 4,
    gate_stride: gates.shape[1]!,
    beta_column: betaColumn,
    alpha_column: alphaColumn,
    scale: keyDim ** -0.5,
    lanes: variant.consts.LANES,
  };
  const bindings = { qkv, gates, decay, spans: spans.words, states: state.matrix, out };
  rec.dispatch(GATED_DELTA_RULE, variant, bindings, params, [ceilDiv(valueDim / 4, columns4), heads, spans.count]);
}

export interface SelectiveScanArgs {
  /** [T, H P + 2 G N] f32: heads of inputs, then groups of B, then of C. */
  readonly xbc: Tensor;
  readonly heads: number;
  /** P and N, multiples of 4. */
  readonly headDim: number;
  readonly stateDim: number;
  /** Groups of consecutive heads that share B and C. */
  readonly groups: number;
  /** [T, ...] with H columns from `stepColumn` on: time steps before bias and softplus. */
  readonly steps: Tensor;
  readonly stepColumn: number;
  /** [3, H]: -exp(A_log), dt_bias, D. */
  readonly ofHeads: Tensor;
  readonly spans: Spans;
  readonly state: StateLayer;
  /** [T, H P]. */
  readonly out: Tensor;
}

/** The selective scan of Mamba 2: each row decays and updates the state of its sequence; out = the updated state applied to C, and D x. */
export function selectiveScan(rec: Recorder, args: SelectiveScanArgs): void {
  const { xbc, heads, headDim, stateDim, groups, steps, stepColumn, ofHeads, spans, state, out } = args;
  const inner = heads * headDim;
  assert(heads % groups === 0 && headDim % 4 === 0 && stateDim % 4 === 0, `selective_scan: ${heads} heads of ${headDim} over ${groups} groups of ${stateDim}`); // prettier-ignore
  assert(xbc.shape[1] === inner + 2 * groups * stateDim && out.shape[1] === inner, `selective_scan: ${xbc.label} [${xbc.shape.join(', ')}]`); // prettier-ignore
  const { columns4, variant } = stateVariant(rec.caps, stateDim, (columns4) => columns4);
  const params = {
    heads,
    group: heads / groups,
    values4: headDim / 4,
    b_first4: inner / 4,
    c_first4: (inner + groups * stateDim) / 4,
    xbc_stride4: xbc.shape[1] / 4,
    step_stride: steps.shape[1]!,
    step_column: stepColumn,
    lanes: variant.consts.LANES,
  };
  const bindings = { xbc, steps, of_heads: ofHeads, spans: spans.words, states: state.matrix, out };
  rec.dispatch(SELECTIVE_SCAN, variant, bindings, params, [ceilDiv(headDim / 4, columns4), heads, spans.count]);
}

export interface RmsNormGatedArgs {
  /** [T, H D] f32. */
  readonly x: Tensor;
  /** [D], or [H D] if each head has weights of its own. */
  readonly weight: Tensor;
  /** D; default the number of weights. */
  readonly columns?: number;
  /** x is multiplied by silu(gate) before it is normed, not after. */
  readonly gateFirst?: boolean;
  /** [T, ...] with H D columns from `gateColumn` on. */
  readonly gate: Tensor;
  readonly gateColumn: number;
  /** [T, H D]. */
  readonly out: Tensor;
  readonly eps: number;
  readonly rows: number;
}

/** out = RMS norm of every head of x, times silu(gate); or the RMS norm of that product. */
export function rmsNormGated(rec: Recorder, args: RmsNormGatedArgs): void {
  const { x, weight, columns = weight.size, gateFirst = false, gate, gateColumn, out, eps, rows } = args;
  const heads = (x.shape[1] ?? 0) / columns;
  const { wg, variant } = reduceVariant(rec.caps, columns);
  const weightStride = weight.size === columns ? 0 : columns;
  const params = { rows, heads, columns, weight_stride: weightStride, gate_stride: gate.shape[1]!, gate_column: gateColumn, eps };
  rec.dispatch(RMS_NORM_GATED, { ...variant, overrides: { WG: wg, GATE_FIRST: gateFirst ? 1 : 0 } }, { x, weight, gate, out }, params, [
    rows * heads,
  ]);
}
