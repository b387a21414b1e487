/**
 * Attention over the paged KV cache: rotary embeddings and grouped queries, with biases and norms of queries and keys where a family has
 * them.
 */
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
import { addLora } from '../../ops/lora.ts';
import type { LoraRows, LoraWeight } from '../../ops/lora.ts';
import type { PromptRows } from '../../ops/linear-matrix.ts';
import type { LinearWeight } from '../../ops/weight.ts';
import { projectHeads } from '../../ops/project-heads.ts';
import { pagedAttention } from '../../ops/paged-attention.ts';
import type { AttentionScores, PagedAttentionArgs } from '../../ops/paged-attention.ts';
import { qkNorm, ropeNorm, stillTable } from '../../ops/rope.ts';
import type { RopeConfig, RopeNormArgs } from '../../ops/rope.ts';
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
  /** The checkpoint stacks q, k and v in one tensor, `qkv_proj`; absent = where it has that tensor. */
  readonly qkvFused?: boolean | undefined;
  /**
   * Gated attention: q_proj has a head's query rows followed by as many gate rows, and the attention output is multiplied by the gate's
   * sigmoid.
   */
  readonly isGated?: boolean | undefined;
  readonly qkvBias: boolean;
  readonly outputBias: boolean;
  /** Norms of queries and keys: true = per head, 'full' = over all heads, 'rotated' = per head, behind the rotation. */
  readonly qkNorm: boolean | 'full' | 'rotated';
  /** Values are normed per head too, without weights. */
  readonly valueNorm?: boolean | undefined;
  /** Values are the output of k_proj, before norm and rotary embedding. */
  readonly valuesAreKeys?: boolean | undefined;
  /** Index of the layer whose KV pages are read; absent = the layer has its own. */
  readonly keysOf?: number | undefined;
  /** Offset added to the weights of norms; default 0. */
  readonly normOffset?: number | undefined;
  /** Attention sinks: each head has a learned score, `sinks`, that takes part in the softmax without a value. */
  readonly hasSinks?: boolean | undefined;
  /** How scores differ from q.k / sqrt(D); absent = they do not. */
  readonly scores?: Pick<AttentionScores, 'scale' | 'softCap' | 'growth'> | undefined;
}

/** A rank's share of an attention layer: its ranges of query and key/value heads. */
export interface AttentionShare {
  readonly q: Range;
  readonly kv: Range;
  /** Query heads of the rank. */
  readonly heads: number;
  readonly kvHeads: number;
  /** Key/value heads that the layer computes: 0 where it reads another layer's pages. */
  readonly newHeads: number;
  readonly headDim: number;
  /** Columns of its widest activation, the merged q, k, v projection. */
  readonly widest: number;
}

/** Weights of a layer on one rank. q, k and v are merged at load, because they read the same input. */
export interface Attention {
  readonly qkv: LinearWeight;
  readonly qkvBias: Tensor | undefined;
  /** Norm weights: [2, D] for queries and keys, [D] without keys; with `qkNormFull` [(H + K) D]. */
  readonly qkNorm: Tensor | undefined;
  readonly valueNorm: boolean;
  readonly qkNormFull: boolean;
  /** [1, D]: the table with which heads that are normed behind their rotation are not rotated again; undefined where norms come first. */
  readonly still: Tensor | undefined;
  /** [H D, C]: the gate of gated attention. */
  readonly gate: LinearWeight | undefined;
  /** [H]: attention sinks of the rank's heads. */
  readonly sinks: Tensor | undefined;
  readonly output: LinearWeight;
  readonly outputBias: Tensor | undefined;
  /** What LoRA adapters add to the products by `qkv` and by `output`; undefined = nothing. */
  readonly lora: { readonly qkv: LoraWeight | undefined; readonly output: LoraWeight | undefined };
}

export interface AttentionWorkspace {
  readonly qkv: Tensor; // [T, (H + 2 K) D], without keys [T, H D]
  readonly q: Tensor; // [T, H (D + APART_CHANNELS)], of which pages that are not int8 use [T, H D]
  readonly attended: Tensor; // [T, H D]
  readonly gate: Tensor | undefined; // [T, H D]
  readonly gathered: Tensor; // [B, H D] of the rows that give logits
  readonly origin: Tensor | undefined; // [T] u32: zeros, the positions that go with Attention.still
}

/** The share of an attention layer that a shard holds; throws EngineError('unsupported') where it cannot be split. */
export function attentionShare({ heads: all, kvHeads: allKV, headDim, qkNorm, keysOf }: AttentionConfig, shard: Shard): AttentionShare {
  // A rank would need a sum over the other ranks' heads before it can continue.
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

/** Loads the rank's weights below `at`, such as `model.layers.0.self_attn`. */
export async function loadAttention(
  loader: WeightLoader,
  at: string,
  config: AttentionConfig,
  { q, kv }: AttentionShare,
  shard: Shard,
): Promise<Attention> {
  const { hidden, heads, kvHeads, headDim, isGated = false, valuesAreKeys = false } = config;
  const qkvFused = config.qkvFused ?? loader.has(`${at}.qkv_proj.weight`);
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
  // Old exports have a buffer of rotary frequencies, which follow from the config.
  loader.skip(`${at}.rotary_emb.inv_freq`);
  // Published checkpoints have unused k and v weights for such layers.
  if (!hasKeys) for (const part of ['k_', 'v_']) loader.skipAll(`${at}.${part}`);
  // The bias is added once, by the first rank.
  const outputBias = config.outputBias && shard.rank === 0;
  if (config.outputBias && !outputBias) loader.skip(`${at}.o_proj.bias`);
  const modules = projections.map(({ name, size, rows }) => ({ module: name, outFeatures: size, rows }));
  return {
    qkv: await loader.mergedLinear(`${at}.qkv`, matrices(projections), hidden),
    qkvBias: config.qkvBias ? await loader.mergedVector(`${at}.qkv bias`, biases) : undefined,
    qkNorm: config.qkNorm ? await loader.mergedVector(`${at}.qk norm`, norms, config.normOffset) : undefined,
    qkNormFull: full,
    still: config.qkNorm === 'rotated' ? stillTable(loader.device, headDim) : undefined,
    valueNorm: config.valueNorm === true && hasKeys,
    gate: isGated ? await loader.mergedLinear(`${at}.gate`, matrices(gates), hidden) : undefined,
    sinks: config.hasSinks ? await loader.mergedVector(`${at}.sinks`, [{ name: `${at}.sinks`, size: heads, rows: q }]) : undefined,
    output: await loader.linear(`${at}.o_proj.weight`, hidden, heads * headDim, { columns }),
    outputBias: outputBias ? await loader.tensor(`${at}.o_proj.bias`, [hidden]) : undefined,
    lora: {
      // An adapter of a gated q_proj would change the gates too.
      qkv: isGated ? undefined : await loader.lora(`${at}.qkv`, modules, { inFeatures: hidden }),
      output: await loader.lora(`${at}.o_proj`, [{ module: `${at}.o_proj`, outFeatures: hidden }], {
        inFeatures: heads * headDim,
        columns,
      }),
    },
  };
}

/**
 * Order of the channels of a query or key head. With partial rotary embeddings checkpoints pair channel d with d + rotary/2, and kernels
 * pair d with d + D/2: so the rotated halves become the first channels of each half of the head, and the others follow. Scores do not
 * depend on the order.
 */
function pairedChannels({ headDim, rope: { rotary = headDim } }: Pick<AttentionConfig, 'headDim' | 'rope'>): readonly Range[] {
  if (rotary === headDim) return [{ from: 0, to: headDim }];
  const ends = [0, rotary / 2, rotary, (rotary + headDim) / 2, headDim];
  return [0, 2, 1, 3].map((i) => ({ from: ends[i]!, to: ends[i + 1]! }));
}

/**
 * Rows of `heads` in a matrix whose heads, of `stride` rows each, begin after `before` other heads; each head's channels come in the given
 * order. Adjacent ranges are merged.
 */
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

/** Allocates activations for `rows` rows of a batch, at most `logitRows` of them with logits. */
export function attentionWorkspace(
  device: TensorMaker,
  { isGated = false, qkNorm }: AttentionConfig,
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
    origin: qkNorm === 'rotated' ? device.tensor('origin', 'u32', [rows]) : undefined,
  };
}

export interface AttentionStep {
  /** [T, C]. */
  readonly input: NormedRows;
  /** Index of the layer's pages in KVCache.layers. */
  readonly layer: number;
  readonly cosSin: Tensor;
  readonly scores: AttentionScores;
  /** [kept] u32: rows that get an output; undefined = all. Every row stores its keys and values. */
  readonly indices: Tensor | undefined;
  /** Number of rows that get an output. */
  readonly kept: number;
  /** First of those rows whose output projection takes subgroup matrices; absent = none does. */
  readonly promptFrom?: number | undefined;
  readonly residual: Tensor | undefined;
  readonly out: Tensor;
}

/** A rotation, and the positions of rows. */
type Rotation = Pick<RopeNormArgs, 'cosSin' | 'positions'>;

/**
 * qkv = the merged projection of the input, with biases and with norms of queries, keys and values; `rotation`: for norms behind it, by
 * default that of position 0.
 */
export function projectQKV(
  rec: Recorder,
  weights: Attention,
  { heads, newHeads }: Pick<AttentionShare, 'heads' | 'newHeads'>,
  {
    input,
    qkv,
    rotation,
    rows,
    promptFrom,
    lora,
  }: { readonly input: NormedRows; readonly qkv: Tensor; readonly rotation?: Rotation; readonly lora?: LoraRows | undefined } & PromptRows,
): void {
  normedLinear(rec, { input, weight: weights.qkv, bias: weights.qkvBias, out: qkv, rows, promptFrom });
  if (lora && weights.lora.qkv) addLora(rec, { ...lora, input, weight: weights.lora.qkv, out: qkv, rows });
  const { qkNorm: weight, qkNormFull: full, valueNorm: values } = weights;
  const norm = weight && { qkv, weight, heads, kvHeads: newHeads, eps: input.eps, rows };
  if (norm && weights.still && rotation) ropeNorm(rec, { ...norm, ...rotation });
  else if (norm) qkNorm(rec, { ...norm, full, values });
}

/** out = residual + attention(input) for the kept rows; keys and values of all rows are stored in the pages. */
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
  // The gate's product needs the normed rows too.
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
  const { lora } = batch;
  if (lora && weights.lora.output) {
    const { loras, shrunk, ofLogits } = lora;
    addLora(rec, { input: { x: attended }, loras: indices ? ofLogits : loras, shrunk, weight: weights.lora.output, out, rows: kept });
  }
}

/** Stores the keys and values of the input in the pages, and leaves its rotated queries in ws.q. */
export function leaveKeys(
  rec: Recorder,
  weights: Attention,
  ws: AttentionWorkspace,
  { heads, newHeads }: Pick<AttentionShare, 'heads' | 'newHeads'>,
  { input, layer, cosSin }: Pick<AttentionStep, 'input' | 'layer' | 'cosSin'>,
  batch: ForwardInput,
  kv: KVCache,
): void {
  const { rows, promptFrom, positions, lora } = batch;
  const slots = kv.layers[layer]!.window === undefined ? batch.slots : batch.windowSlots;
  const places = { queriesOnly: newHeads === 0, cosSin, positions, slots, q: ws.q, kv, layer, heads, rows, promptFrom };
  const { qkv: weight, qkvBias: bias, qkNorm: headNorm } = weights;
  // What adapters add comes before norms and rotation, which the fused kernel does at once.
  const isPlain = lora === undefined || weights.lora.qkv === undefined;
  const alike = isPlain && !weights.qkNormFull && !weights.valueNorm && !weights.still;
  if (!alike || !projectHeads(rec, { input, weight, bias, headNorm, ...places })) {
    projectQKV(rec, weights, { heads, newHeads }, { input, qkv: ws.qkv, rotation: { cosSin, positions }, rows, promptFrom, lora });
    ropeKVStore(rec, { qkv: ws.qkv, ...places, ...(weights.still && { cosSin: weights.still, positions: ws.origin! }) });
  }
}

/** ws.attended = attention of ws.q over the pages. */
export function attendPages(
  rec: Recorder,
  own: Pick<PagedAttentionArgs, 'heads' | 'layer' | 'scores' | 'sinks'>,
  ws: Pick<AttentionWorkspace, 'q' | 'attended'>,
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
