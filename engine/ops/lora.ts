/** Products of low rank that LoRA adapters (Hu et al. 2021, https://arxiv.org/abs/2106.09685) add to those of a model's matrices. */
import { assert } from '../errors.ts';
import { defineKernel } from '../gpu/kernel.ts';
import type { Variant } from '../gpu/kernel.ts';
import type { Device } from '../gpu/device.ts';
import type { Recorder } from '../gpu/recorder.ts';
import type { Tensor } from '../gpu/tensor.ts';
import { ceilDiv } from '../util/math.ts';
import { ACTIVATIONS, gateMul } from './activation.ts';
import type { Activation } from './activation.ts';
import type { NormedRows } from './fused-linear.ts';
import { reduceFragment, reduceVariant } from './reduce.ts';

export const LORA_ADD = defineKernel({
  file: 'lora/lora_add.wgsl',
  fragments: (v) => [...inputFragments(v), ...GATE_FRAGMENTS],
  bindings: { x: 'read', norm: 'read', loras: 'read', table: 'read', a: 'read', b: 'read', out: 'update', activated: 'write' },
  params: { segments: 'u32', k4: 'u32', end0: 'u32', end1: 'u32', n4: 'u32', out_stride4: 'u32', eps: 'f32' },
  overrides: { WG: 'u32', HAS_NORM: 'bool', GATED: 'bool', ACTIVATION: 'u32' },
});

export const LORA_SHRINK = defineKernel({
  file: 'lora/lora_shrink.wgsl',
  fragments: (v) => ['lib/grid.wgsl', ...inputFragments(v)],
  bindings: { x: 'read', norm: 'read', loras: 'read', table: 'read', a: 'read', out: 'write' },
  params: { rows: 'u32', segments: 'u32', ranks: 'u32', k4: 'u32', out_stride4: 'u32', eps: 'f32' },
  overrides: { WG: 'u32', HAS_NORM: 'bool' },
});

export const LORA_EXPAND = defineKernel({
  file: 'lora/lora_expand.wgsl',
  fragments: () => ['lib/lora_delta.wgsl'],
  bindings: { h: 'read', loras: 'read', table: 'read', b: 'read', out: 'update' },
  params: { segments: 'u32', ranks: 'u32', end0: 'u32', end1: 'u32', n4: 'u32', h_stride4: 'u32', out_stride4: 'u32' },
  overrides: { WG: 'u32' },
});

export const LORA_GATE = defineKernel({
  file: 'lora/lora_gate.wgsl',
  fragments: () => ['lib/lora_delta.wgsl', ...GATE_FRAGMENTS],
  bindings: { h: 'read', loras: 'read', table: 'read', b: 'read', gate_up: 'read', out: 'write' },
  params: { segments: 'u32', ranks: 'u32', columns4: 'u32', h_stride4: 'u32' },
  overrides: { WG: 'u32', ACTIVATION: 'u32' },
});

const GATE_FRAGMENTS = ['lib/activation.wgsl', 'lib/activation_quad.wgsl'] as const;
const inputFragments = (v: Variant): readonly string[] => [reduceFragment(v), 'lib/lora_input.wgsl'];

/** Invocations per workgroup of LORA_EXPAND and LORA_GATE: two subgroups of most GPUs. */
const EXPAND_WG = 64;
/** With this many outputs per input, two workgroups of LORA_ADD share the columns of a single row, though both multiply by A. */
const SHARED = 4;
/** Matrices with a common input that are stacked in one product: q, k and v at most. */
const MOST_SEGMENTS = 3;
/** Ranks are padded to a multiple of this, a vec4. */
const QUAD = 4;
/** u32 words of the table for an adapter and a segment: first vec4 of A, first vec4 of B, quads of the rank, nothing. */
const TABLE_WORDS = 4;

/** What one adapter adds to one matrix: scale * B A, with the scale in B. */
export interface LoraMatrices {
  readonly rank: number;
  /** [rank, K]. */
  readonly a: Float32Array;
  /** [N, rank]. */
  readonly b: Float32Array;
}

/** What all adapters add to a matrix [N, K] that is stacked from segments with the same input. */
export interface LoraWeight {
  /** [1 + adapters, segments, TABLE_WORDS] u32: where an adapter's matrices lie; 0 is no adapter. */
  readonly table: Tensor;
  readonly a: Tensor;
  readonly b: Tensor;
  /** Quads of output features before which each segment ends. */
  readonly ends: readonly number[];
  /** Quads of the largest rank. */
  readonly ranks: number;
  readonly inFeatures: number;
}

/** The adapters of a batch's rows. */
export interface LoraRows {
  /** [T] u32: 1 + the index of the row's adapter, 0 for none. */
  readonly loras: Tensor;
  /** [T, loraColumns(largest rank)] f32, scratch. */
  readonly shrunk: Tensor;
}

/** Columns of LoraRows.shrunk for adapters of this rank. */
export function loraColumns(rank: number): number {
  return MOST_SEGMENTS * QUAD * ceilDiv(rank, QUAD);
}

/** Device bytes of an adapter's part of a matrix [outFeatures, inFeatures]. */
export function loraBytes(rank: number, outFeatures: number, inFeatures: number): number {
  return 4 * QUAD * ceilDiv(rank, QUAD) * (outFeatures + inFeatures);
}

/** Uploads what adapters add to a matrix: for each of its segments the output features, and each adapter's matrices, if it has any. */
export function uploadLora(
  device: Device,
  label: string,
  inFeatures: number,
  segments: readonly { readonly outFeatures: number; readonly loras: readonly (LoraMatrices | undefined)[] }[],
): LoraWeight {
  const quads = (rank: number): number => ceilDiv(rank, QUAD);
  assert(segments.length <= MOST_SEGMENTS, `${label}: ${segments.length} segments, at most ${MOST_SEGMENTS}`);
  const isWhole = inFeatures % QUAD === 0 && segments.every(({ outFeatures }) => outFeatures % QUAD === 0);
  assert(isWhole, `${label}: ${inFeatures} inputs and ${segments.map((one) => one.outFeatures).join(', ')} outputs are no quads`);
  const count = segments[0]!.loras.length;
  const table = new Uint32Array((1 + count) * segments.length * TABLE_WORDS);
  const parts = Array.from({ length: count }, (_, lora) => segments.map(({ outFeatures, loras }) => ({ outFeatures, of: loras[lora] })));
  const all = parts.flat().filter(({ of }) => of);
  const size = (width: (part: (typeof all)[number]) => number): number =>
    all.reduce((sum, part) => sum + QUAD * quads(part.of!.rank) * width(part), 0);
  const a = new Float32Array(size(() => inFeatures));
  const b = new Float32Array(size(({ outFeatures }) => outFeatures));
  let [atA, atB] = [0, 0];
  for (const [lora, of] of parts.entries()) {
    for (const [segment, { outFeatures: n, of: given }] of of.entries()) {
      if (!given) continue;
      const { rank } = given;
      table.set([atA / QUAD, atB / QUAD, quads(rank)], ((1 + lora) * segments.length + segment) * TABLE_WORDS);
      a.set(given.a, atA);
      for (let row = 0; row < n; row++) for (let j = 0; j < rank; j++) b[atB + j * n + row] = given.b[row * rank + j]!;
      atA += QUAD * quads(rank) * inFeatures;
      atB += QUAD * quads(rank) * n;
    }
  }
  let end = 0;
  return {
    table: device.upload(`${label} lora table`, 'u32', [1 + count, segments.length, TABLE_WORDS], table),
    a: device.upload(`${label} lora a`, 'f32', [a.length], a),
    b: device.upload(`${label} lora b`, 'f32', [b.length], b),
    ends: segments.map(({ outFeatures }) => (end += outFeatures / QUAD)),
    ranks: all.reduce((most, { of }) => Math.max(most, quads(of!.rank)), 0),
    inFeatures,
  };
}

export interface AddLoraArgs extends LoraRows {
  /** What the product reads: [T, K] f32, and the RMS norm [K] that its rows pass first. */
  readonly input: LoraInput;
  readonly weight: LoraWeight;
  /** [T, N] f32: the product, to which each row's adapter is added; with a gate, scratch after that. */
  readonly out: Tensor;
  readonly rows: number;
  /** For outputs that are gates and ups [2 I]: takes act(gates) * ups [T, I] of all rows, with the bits of gateMul. */
  readonly gate?: { readonly activation: Activation; readonly out: Tensor } | undefined;
}

export type LoraInput = Pick<NormedRows, 'x'> & Partial<Pick<NormedRows, 'norm' | 'eps'>>;

/**
 * out += scale * norm(x) A^T B^T by the adapter of each row, and the gate behind it. A row depends on itself alone, and one without an
 * adapter keeps its bits. On a software adapter it is one dispatch, on GPUs two, which have more workgroups to share the work.
 */
export function addLora(rec: Recorder, args: AddLoraArgs): void {
  const { rows, gate, weight, out } = args;
  if (rows === 0) return;
  expectFit(args);
  // Gates and ups that the checkpoint stacks in one matrix are one segment.
  const isOneSegment = gate && weight.ends.length === 1;
  const own = isOneSegment ? { ...args, gate: undefined } : args;
  if (rec.caps.family === 'cpu') inOne(rec, own);
  else inTwo(rec, own);
  if (isOneSegment) gateMul(rec, { gateUp: out, ...gate, rows });
}

function expectFit({ input: { x, norm }, shrunk, weight: { ends, ranks, inFeatures }, out, gate }: AddLoraArgs): void {
  const [hStride, outStride, n] = [shrunk.shape.at(-1) ?? 0, out.shape.at(-1) ?? 0, QUAD * ends.at(-1)!];
  const { length: segments } = ends;
  assert(x.shape.at(-1) === inFeatures && (norm?.size ?? inFeatures) === inFeatures, `lora: ${x.label} has ${x.shape.at(-1)} columns, the adapters ${inFeatures}`); // prettier-ignore
  assert(outStride % QUAD === 0 && n <= outStride, `lora: ${n} outputs in ${outStride} columns of ${out.label}`);
  assert(QUAD * segments * ranks <= hStride, `lora: ${segments} times ${ranks} quads in ${hStride} columns of ${shrunk.label}`);
  if (!gate) return;
  const columns = gate.out.shape.at(-1) ?? 0;
  const isHalf = segments <= 2 && segments * QUAD * ends[0]! === n && 2 * columns === n && outStride === n;
  assert(isHalf, `lora: ${segments} segments of ${n} gates and ups in ${outStride} columns, of which ${columns} are left`);
}

function inOne(rec: Recorder, { input: { x, norm, eps = 0 }, loras, shrunk, weight, out, rows, gate }: AddLoraArgs): void {
  const { table, a, b, ends, inFeatures } = weight;
  const n4 = ends.at(-1)!;
  const { wg, variant } = reduceVariant(rec.caps, inFeatures);
  const overrides = { WG: wg, HAS_NORM: norm ? 1 : 0, GATED: gate ? 1 : 0, ACTIVATION: ACTIVATIONS[gate?.activation ?? 'none'] };
  rec.dispatch(
    LORA_ADD,
    { ...variant, overrides },
    // A writable binding that only gates have.
    { x, norm: norm ?? x, loras, table, a, b, out, activated: gate?.out ?? shrunk },
    { segments: ends.length, k4: inFeatures / QUAD, ...endsOf(ends), n4, out_stride4: (out.shape.at(-1) ?? 0) / QUAD, eps },
    [rows === 1 && QUAD * n4 >= SHARED * inFeatures ? 2 : 1, rows],
  );
}

function inTwo(rec: Recorder, { input: { x, norm, eps = 0 }, loras, shrunk, weight, out, rows, gate }: AddLoraArgs): void {
  const { table, a, b, ends, ranks, inFeatures } = weight;
  const [segments, n4, hStride] = [ends.length, ends.at(-1)!, (shrunk.shape.at(-1) ?? 0) / QUAD];
  const { wg, variant } = reduceVariant(rec.caps, inFeatures);
  rec.dispatch(
    LORA_SHRINK,
    { ...variant, overrides: { WG: wg, HAS_NORM: norm ? 1 : 0 } },
    { x, norm: norm ?? x, loras, table, a, out: shrunk },
    { rows, segments, ranks, k4: inFeatures / QUAD, out_stride4: hStride, eps },
    [rows * segments * ranks],
  );
  const [read, sizes] = [
    { h: shrunk, loras, table, b },
    { segments, ranks, h_stride4: hStride },
  ];
  if (gate) {
    const overrides = { WG: EXPAND_WG, ACTIVATION: ACTIVATIONS[gate.activation] };
    const columns4 = n4 / 2;
    rec.dispatch(LORA_GATE, { overrides }, { ...read, gate_up: out, out: gate.out }, { ...sizes, columns4 }, [ceilDiv(columns4, EXPAND_WG), rows]); // prettier-ignore
    return;
  }
  const params = { ...sizes, ...endsOf(ends), n4, out_stride4: (out.shape.at(-1) ?? 0) / QUAD };
  rec.dispatch(LORA_EXPAND, { overrides: { WG: EXPAND_WG } }, { ...read, out }, params, [ceilDiv(n4, EXPAND_WG), rows]);
}

const endsOf = (ends: readonly number[]) => ({ end0: ends[0]!, end1: ends[1] ?? ends.at(-1)! });
