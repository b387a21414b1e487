/** Attention over pages of keys and values: rotary positions, grouped queries, with biases and norms of queries and keys where a family has them. */
import { EngineError } from '../../errors.ts';
import type { Remedy } from '../../errors.ts';
import type { Recorder } from '../../gpu/recorder.ts';
import type { Tensor } from '../../gpu/tensor.ts';
import { APART_CHANNELS, ropeKVStore } from '../../ops/kv.ts';
import type { KVCache } from '../../ops/kv.ts';
import { mulSigmoid } from '../../ops/activation.ts';
import { normedLinear, normedRows } from '../../ops/fused-linear.ts';
import type { NormedRows } from '../../ops/fused-linear.ts';
import { linear } from '../../ops/linear.ts';
import type { PromptRows } from '../../ops/linear-matrix.ts';
import type { LinearWeight } from '../../ops/weight.ts';
import { projectHeads } from '../../ops/project-heads.ts';
import { pagedAttention } from '../../ops/paged-attention.ts';
import type { AttentionScores, PagedAttentionArgs } from '../../ops/paged-attention.ts';
import { qkNorm } from '../../ops/rope.ts';
import type { RopeConfig } from '../../ops/rope.ts';
import { gatherRows } from '../../ops/sample.ts';
import { sizeOf } from '../../util/math.ts';
import type { Range } from '../../util/math.ts';
import type { WeightLoader } from '../weight-loader.ts';
import type { ForwardInput } from '../forward-input.ts';
import { headShare } from '../shard.ts';
import type { Shard } from '../shard.ts';
import type { TensorMaker } from './by-turns.ts';

export interface AttentionConfig {
  readonly hidden: number;
  readonly heads: number;
  readonly kvHeads: number;
  readonly headDim: number;
  readonly eps: number;
  readonly rope: Pick<RopeConfig, 'rotary'>;
  /** q, k and v are one tensor, `qkv_proj`, one below the other. */
  readonly qkvFused?: boolean | undefined;
  /** Behind a head's rows of queries q_proj has as many of a gate, and what comes out is multiplied by its sigmoid. */
  readonly isGated?: boolean | undefined;
  readonly qkvBias: boolean;
  readonly outputBias: boolean;
  /** Norms of queries and keys: one a head, or one over all heads. */
  readonly qkNorm: boolean | 'full';
  /** Values are normed too, without weights. */
  readonly valueNorm?: boolean | undefined;
  /** Values are keys as they come out of k_proj. */
  readonly valuesAreKeys?: boolean | undefined;
  /** The layer whose pages are read, where it has no keys and values of its own. */
  readonly keysOf?: number | undefined;
  /** What is added to the weights of norms; default 0. */
  readonly normOffset?: number | undefined;
  /** Each head has a score of its own that takes part in the softmax and has no value: `sinks`. */
  readonly hasSinks?: boolean | undefined;
  /** How scores are made of queries and keys, where it is not the usual way. */
  readonly scores?: Pick<AttentionScores, 'scale' | 'softCap' | 'growth'> | undefined;
}

/** What a rank holds of it. */
export interface AttentionShare {
  readonly q: Range;
  readonly kv: Range;
  /** Its own numbers of heads. */
  readonly heads: number;
  readonly kvHeads: number;
  /** Heads of keys that it makes: none where it reads those of another layer. */
  readonly newHeads: number;
  readonly headDim: number;
  /** Columns of the widest activation, the merged projection. */
  readonly widest: number;
}

/** Weights of a layer. q, k and v are merged at load: they read the same input. */
export interface Attention {
  readonly qkv: LinearWeight;
  readonly qkvBias: Tensor | undefined;
  /** [2, D]: of queries, of keys; without keys [D]; `qkNormFull`: [(H + K) D]. */
  readonly qkNorm: Tensor | undefined;
  readonly valueNorm: boolean;
  readonly qkNormFull: boolean;
  /** [H D, C]. */
  readonly gate: LinearWeight | undefined;
  /** [H] of this rank. */
  readonly sinks: Tensor | undefined;
  readonly output: LinearWeight;
  readonly outputBias: Tensor | undefined;
}

export interface AttentionWorkspace {
  readonly qkv: Tensor; // [T, (H + 2 K) D], without keys [T, H D]
  readonly q: Tensor; // [T, H (D + APART_CHANNELS)], of which pages that are not int8 use [T, H D]
  readonly attended: Tensor; // [T, H D]
  readonly gate: Tensor | undefined; // [T, H D]
  readonly gathered: Tensor; // [B, H D] of the rows that give logits
}

/** A rank's heads. */
export function attentionShare({ heads: all, kvHeads: allKV, headDim, qkNorm, keysOf }: AttentionConfig, shard: Shard): AttentionShare {
  // A rank would need the sum over the heads of the others before it can go on.
  if (qkNorm === 'full' && shard.ranks > 1) {
    const layers: Remedy = { does: 'split its layers instead', settings: [{ name: 'ppSize', value: shard.ranks }] };
    throw new EngineError('unsupported', `norms over all heads of queries or keys cannot be split over ${shard.ranks} adapters`, { remedies: [layers] }); // prettier-ignore
  }
  const { q, kv } = headShare(all, allKV, shard);
  const heads = sizeOf(q);
  const kvHeads = sizeOf(kv);
  const newHeads = keysOf === undefined ? kvHeads : 0;
  return { q, kv, heads, kvHeads, newHeads, headDim, widest: (heads + 2 * newHeads) * headDim };
}

/** Takes the weights below `at`, such as `model.layers.0.self_attn`. */
export async function loadAttention(
  loader: WeightLoader,
  at: string,
  config: AttentionConfig,
  { q, kv }: AttentionShare,
  shard: Shard,
): Promise<Attention> {
  const { hidden, heads, kvHeads, headDim, qkvFused, isGated = false, valuesAreKeys = false } = config;
  const hasKeys = config.keysOf === undefined;
  const order = pairedChannels(config);
  const whole = [{ from: 0, to: headDim }];
  const projection = (name: string, before: number, count: number, kept: Range, channels: readonly Range[], stride = headDim) =>
    rowsOf(channels, stride, kept, qkvFused ? before : 0).map((rows) => ({
      name: `${at}.${qkvFused ? 'qkv' : name}_proj`,
      size: qkvFused ? (heads + 2 * kvHeads) * headDim : count * stride,
      rows,
    }));
  const queryRows = isGated ? 2 * headDim : headDim;
  const gates = isGated ? projection('q', 0, heads, q, [{ from: headDim, to: queryRows }], queryRows) : [];
  const projections = [
    ...projection('q', 0, heads, q, order, queryRows),
    ...(hasKeys ? projection('k', heads, kvHeads, kv, order) : []),
    ...(hasKeys ? projection(valuesAreKeys ? 'k' : 'v', heads + kvHeads, kvHeads, kv, whole) : []),
  ];
  const columns = { from: q.from * headDim, to: q.to * headDim };
  const matrices = (parts: typeof projections) =>
    parts.map(({ name, size, rows }) => ({ name: `${name}.weight`, outFeatures: size, rows }));
  const biases = projections.map(({ name, size, rows }) => ({ name: `${name}.bias`, size, rows }));
  const full = config.qkNorm === 'full';
  const norms = ([['q', heads, q], ...(hasKeys ? ([['k', kvHeads, kv]] as const) : [])] as const).flatMap(([name, count, kept]) =>
    (full ? rowsOf(order, headDim, kept, 0) : order).map((rows) => ({
      name: `${at}.${name}_norm.weight`,
      size: full ? count * headDim : headDim,
      rows,
    })),
  );
  // Old exports carry a buffer of frequencies; they follow from the config.
  loader.skip(`${at}.rotary_emb.inv_freq`);
  // Published files have them all the same.
  if (!hasKeys) for (const part of ['k_', 'v_']) loader.skipAll(`${at}.${part}`);
  // The bias is added once, by the first rank.
  const outputBias = config.outputBias && shard.rank === 0;
  if (config.outputBias && !outputBias) loader.skip(`${at}.o_proj.bias`);
  return {
    qkv: await loader.mergedLinear(`${at}.qkv`, matrices(projections), hidden),
    qkvBias: config.qkvBias ? await loader.mergedVector(`${at}.qkv bias`, biases) : undefined,
    qkNorm: config.qkNorm ? await loader.mergedVector(`${at}.qk norm`, norms, config.normOffset) : undefined,
    qkNormFull: full,
    valueNorm: config.valueNorm === true && hasKeys,
    gate: isGated ? await loader.mergedLinear(`${at}.gate`, matrices(gates), hidden) : undefined,
    sinks: config.hasSinks ? await loader.mergedVector(`${at}.sinks`, [{ name: `${at}.sinks`, size: heads, rows: q }]) : undefined,
    output: await loader.linear(`${at}.o_proj.weight`, hidden, heads * headDim, { columns }),
    outputBias: outputBias ? await loader.tensor(`${at}.o_proj.bias`, [hidden]) : undefined,
  };
}

/**
 * The channels of a head of queries or keys in the order they have here. Where only the first are rotated, checkpoints pair d with d + rotary/2, and kernels
 * d with d + D/2: the rotated halves become the first channels of the halves of the head, and the others follow them. Scores do not see the order.
 */
function pairedChannels({ headDim, rope: { rotary = headDim } }: Pick<AttentionConfig, 'headDim' | 'rope'>): readonly Range[] {
  if (rotary === headDim) return [{ from: 0, to: headDim }];
  const ends = [0, rotary / 2, rotary, (rotary + headDim) / 2, headDim];
  return [0, 2, 1, 3].map((i) => ({ from: ends[i]!, to: ends[i + 1]! }));
}

/** The rows of `heads` of a matrix whose heads of `stride` rows begin behind `before` others, each with its channels in this order. Neighbours are one range. */
function rowsOf(channels: readonly Range[], stride: number, heads: Range, before: number): readonly Range[] {
  const rows: Range[] = [];
  for (let head = heads.from; head < heads.to; head++) {
    for (const { from, to } of channels) {
      const first = (before + head) * stride;
      const last = rows.at(-1);
      if (last?.to === first + from) rows[rows.length - 1] = { from: last.from, to: first + to };
      else rows.push({ from: first + from, to: first + to });
    }
  }
  return rows;
}

/** Activations for `rows` rows of a batch, of which at most `logitRows` give logits. */
export function attentionWorkspace(
  device: TensorMaker,
  { isGated = false }: AttentionConfig,
  { heads, headDim, widest }: AttentionShare,
  rows: number,
  logitRows: number,
): AttentionWorkspace {
  return {
    qkv: device.tensor('qkv', 'f32', [rows, widest]),
    q: device.tensor('q', 'f32', [rows, heads * (headDim + APART_CHANNELS)]),
    attended: device.tensor('attended', 'f32', [rows, heads * headDim]),
    gate: isGated ? device.tensor('attention gate', 'f32', [rows, heads * headDim]) : undefined,
    gathered: device.tensor('gathered attended', 'f32', [logitRows, heads * headDim]),
  };
}

export interface AttentionStep {
  /** [T, C]. */
  readonly input: NormedRows;
  /** Number of its pages. */
  readonly layer: number;
  readonly cosSin: Tensor;
  readonly scores: AttentionScores;
  /** Only these rows are attended for; absent = all. Every row leaves its keys and values. */
  readonly indices: Tensor | undefined;
  /** Rows that are attended for. */
  readonly kept: number;
  /** The first of those whose product takes subgroup matrices; absent = none does. */
  readonly promptFrom?: number | undefined;
  readonly residual: Tensor | undefined;
  readonly out: Tensor;
}

/** qkv = the merged projection of the input, with biases and norms of queries and keys. */
export function projectQKV(
  rec: Recorder,
  weights: Attention,
  { heads, newHeads }: Pick<AttentionShare, 'heads' | 'newHeads'>,
  { input, qkv, rows, promptFrom }: { readonly input: NormedRows; readonly qkv: Tensor } & PromptRows,
): void {
  normedLinear(rec, { input, weight: weights.qkv, bias: weights.qkvBias, out: qkv, rows, promptFrom });
  const { qkNorm: weight, qkNormFull: full, valueNorm: values } = weights;
  if (weight) qkNorm(rec, { qkv, weight, full, values, heads, kvHeads: newHeads, eps: input.eps, rows });
}

/** out = residual + attention of x, of the kept rows; the pages get the keys and values of all. */
export function attend(
  rec: Recorder,
  weights: Attention,
  ws: AttentionWorkspace,
  { heads, newHeads }: Pick<AttentionShare, 'heads' | 'newHeads'>,
  { input: step, layer, cosSin, scores, indices, kept, promptFrom, residual, out }: AttentionStep,
  batch: ForwardInput,
  kv: KVCache,
): void {
  const { rows } = batch;
  // A gate reads the same rows.
  const input = weights.gate ? { ...step, x: normedRows(rec, step, rows), norm: undefined } : step;
  leaveKeys(rec, weights, ws, { heads, newHeads }, { input, layer, cosSin }, batch, kv);
  if (kept > 0) attendPages(rec, { heads, layer, scores, sinks: weights.sinks }, ws, batch, kv);
  if (weights.gate) {
    linear(rec, { x: input.x, weight: weights.gate, out: ws.gate!, rows, promptFrom: batch.promptFrom });
    mulSigmoid(rec, { x: ws.attended, gate: ws.gate!, rows });
  }
  if (indices) gatherRows(rec, { x: ws.attended, indices, out: ws.gathered, rows: kept });
  const attended = indices ? ws.gathered : ws.attended;
  linear(rec, { x: attended, weight: weights.output, bias: weights.outputBias, residual, out, rows: kept, promptFrom });
}

/** The pages get the keys and values of x, and ws.q its queries. */
export function leaveKeys(
  rec: Recorder,
  weights: Attention,
  ws: AttentionWorkspace,
  { heads, newHeads }: Pick<AttentionShare, 'heads' | 'newHeads'>,
  { input, layer, cosSin }: Pick<AttentionStep, 'input' | 'layer' | 'cosSin'>,
  batch: ForwardInput,
  kv: KVCache,
): void {
  const { rows, promptFrom, positions } = batch;
  const slots = kv.layers[layer]!.window === undefined ? batch.slots : batch.windowSlots;
  const places = { queriesOnly: newHeads === 0, cosSin, positions, slots, q: ws.q, kv, layer, heads, rows, promptFrom };
  const { qkv: weight, qkvBias: bias, qkNorm: headNorm } = weights;
  const alike = !weights.qkNormFull && !weights.valueNorm;
  if (!alike || !projectHeads(rec, { input, weight, bias, headNorm, ...places })) {
    projectQKV(rec, weights, { heads, newHeads }, { input, qkv: ws.qkv, rows, promptFrom });
    ropeKVStore(rec, { qkv: ws.qkv, ...places });
  }
}

/** ws.attended = attention of ws.q over the pages. */
function attendPages(
  rec: Recorder,
  own: Pick<PagedAttentionArgs, 'heads' | 'layer' | 'scores' | 'sinks'>,
  ws: AttentionWorkspace,
  input: ForwardInput,
  kv: KVCache,
): void {
  const { tiles, decodeTiles, prefillTiles, prefillTileRows, split } = input;
  const blockTable = kv.layers[own.layer]!.window === undefined ? input.blockTable : input.windowTable;
  const shared = { q: ws.q, kv, blockTable, tiles, out: ws.attended, ...own };
  if (decodeTiles > 0) pagedAttention(rec, { ...shared, firstTile: 0, tileCount: decodeTiles, tileRows: 1, split });
  if (prefillTiles > 0) {
    pagedAttention(rec, { ...shared, firstTile: decodeTiles, tileCount: prefillTiles, tileRows: prefillTileRows });
  }
}
