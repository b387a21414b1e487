/**
 * Multi-head latent attention over the paged KV cache (DeepSeek-V2, https://arxiv.org/abs/2405.04434), in its absorbed form. A token's key
 * and value are products of one latent [R], so the latent is what pages hold, with the key's P rotated channels behind it. Instead of the
 * keys of each head, its queries are multiplied with W_UK, which makes keys of latents; instead of values, the attended latent with W_UV.
 */
import type { Device } from '../../gpu/device.ts';
import type { Recorder } from '../../gpu/recorder.ts';
import type { Tensor } from '../../gpu/tensor.ts';
import { normedLinear } from '../../ops/fused-linear.ts';
import type { NormedRows } from '../../ops/fused-linear.ts';
import type { KVCache } from '../../ops/kv.ts';
import { createHeadTiles, headLinear, latentQueries, latentStore } from '../../ops/latent.ts';
import type { HeadTiles, LatentSizes } from '../../ops/latent.ts';
import { linear } from '../../ops/linear.ts';
import { gatherRows } from '../../ops/sample.ts';
import type { LinearWeight } from '../../ops/weight.ts';
import { sizeOf } from '../../util/math.ts';
import type { Range } from '../../util/math.ts';
import type { Checkpoint } from '../../weights/checkpoint.ts';
import type { ForwardInput } from '../forward-input.ts';
import { withPairs } from '../paired-checkpoint.ts';
import type { PairedRows } from '../paired-checkpoint.ts';
import type { Shard } from '../shard.ts';
import type { MatrixPart, WeightLoader } from '../weight-loader.ts';
import { attendPages } from './attention.ts';
import type { AttentionConfig, AttentionShare, AttentionStep } from './attention.ts';

export interface LatentConfig extends LatentSizes {
  /** Rank of the queries' product, which is then two with a norm between them; absent = it is one. */
  readonly queryRank: number | undefined;
  /** Channels of a head's queries and keys that are not rotated, N. */
  readonly still: number;
  /** Channels of a head's values, V. */
  readonly valueDim: number;
  /** The checkpoint's rotary embedding pairs channels 2d and 2d + 1. */
  readonly isInterleaved: boolean;
  /** The first products, of queries and of the latent, have biases; as has the last if AttentionConfig.outputBias says so. */
  readonly hasBias: boolean;
  /** Of the norms of queries and latents. */
  readonly eps: number;
}

/** Weights of a layer on one rank, of its H heads. */
export interface LatentAttention {
  readonly config: LatentConfig;
  /** [Rq, C] and what goes with it; absent where queries are one product. */
  readonly queryDown: { readonly weight: LinearWeight; readonly bias: Tensor | undefined; readonly norm: Tensor } | undefined;
  /** [H N, C or Rq]: the queries' channels that are not rotated. */
  readonly still: LinearWeight;
  /** [H P, C or Rq]: those that are. */
  readonly rotary: LinearWeight;
  /** [R + P, C]: the latent and the key's rotated channels. */
  readonly down: LinearWeight;
  readonly downBias: Tensor | undefined;
  readonly norm: Tensor; // [R]
  /** [H R, N]: W_UK, transposed. */
  readonly ofKeys: LinearWeight;
  /** [H V, R]: W_UV. */
  readonly ofValues: LinearWeight;
  readonly output: LinearWeight; // [C, H V]
  readonly outputBias: Tensor | undefined;
}

export interface LatentWorkspace {
  readonly down: Tensor; // [T, R + P]
  readonly queryDown: Tensor | undefined; // [T, Rq]
  readonly queryNormed: Tensor | undefined; // [T, Rq]
  readonly still: Tensor; // [T, H N]
  readonly rotary: Tensor; // [T, H P]
  /** [T, H R]: the queries in the latent space; and, once these are with their rotated channels in `q`, what attention gives. */
  readonly latent: Tensor;
  readonly q: Tensor; // [T, H (R + P)]
  readonly values: Tensor; // [T, H V]
  readonly gathered: Tensor; // [B, H V] of the rows that give logits
  readonly tiles: HeadTiles;
}

/** Loads the rank's weights below `at`, such as `model.layers.0.self_attn`. */
export async function loadLatent(
  loader: WeightLoader,
  at: string,
  { hidden, heads, outputBias, latent: config }: AttentionConfig & { readonly latent: LatentConfig },
  { q }: Pick<AttentionShare, 'q'>,
  { rank: ofRanks }: Pick<Shard, 'rank'>,
): Promise<LatentAttention> {
  const { rank, rotary, still, valueDim, queryRank, hasBias } = config;
  const key = still + rotary;
  const queries = (from: number, to: number): MatrixPart[] =>
    rowsOfHeads(`${at}.${queryRank === undefined ? 'q' : 'q_b'}_proj.weight`, { heads, q, stride: key, from, to });
  const columns = { from: q.from * valueDim, to: q.to * valueDim };
  // Old exports have a buffer of rotary frequencies, which follow from the config.
  loader.skip(`${at}.rotary_emb.inv_freq`);
  const isFirst = ofRanks === 0;
  if (outputBias && !isFirst) loader.skip(`${at}.o_proj.bias`);
  return {
    config,
    queryDown:
      queryRank === undefined
        ? undefined
        : {
            weight: await loader.linear(`${at}.q_a_proj.weight`, queryRank, hidden),
            bias: hasBias ? await loader.tensor(`${at}.q_a_proj.bias`, [queryRank]) : undefined,
            norm: await loader.tensor(`${at}.q_a_layernorm.weight`, [queryRank]),
          },
    still: await loader.mergedLinear(`${at}.q still`, queries(0, still), queryRank ?? hidden),
    rotary: await loader.mergedLinear(`${at}.q rotary`, queries(still, key), queryRank ?? hidden),
    down: await loader.linear(`${at}.kv_a_proj_with_mqa.weight`, rank + rotary, hidden),
    downBias: hasBias ? await loader.tensor(`${at}.kv_a_proj_with_mqa.bias`, [rank + rotary]) : undefined,
    norm: await loader.tensor(`${at}.kv_a_layernorm.weight`, [rank]),
    ...(await loadUp(loader, at, heads, q, config)),
    output: await loader.linear(`${at}.o_proj.weight`, hidden, heads * valueDim, { columns }),
    outputBias: outputBias && isFirst ? await loader.tensor(`${at}.o_proj.bias`, [hidden]) : undefined,
  };
}

/** A checkpoint that pairs rotated channels 2d and 2d + 1, read with those of a pair half of P apart. */
export function pairedLatents(checkpoint: Checkpoint, heads: number, { rank, rotary, still }: LatentConfig): Checkpoint {
  return withPairs(checkpoint, (name): PairedRows | undefined => {
    if (/\.self_attn\.q(_b)?_proj\./.test(name)) return { heads, turned: heads, first: still, rotary };
    return name.includes('.self_attn.kv_a_proj_with_mqa.') ? { heads: 1, turned: 1, first: rank, rotary } : undefined;
  });
}

/** Of a matrix whose heads have `stride` rows each, the rows [from, to) of the heads `q`. */
function rowsOfHeads(
  name: string,
  { heads, q, stride, from, to }: Range & { readonly heads: number; readonly q: Range; readonly stride: number },
): MatrixPart[] {
  return Array.from({ length: sizeOf(q) }, (_, i) => {
    const first = (q.from + i) * stride;
    return { name, outFeatures: heads * stride, rows: { from: first + from, to: first + to } };
  });
}

/**
 * W_UK and W_UV: two tensors, the former transposed head by head (newer GGUF files); or one, whose heads have N rows of the former, then V of
 * the latter.
 */
async function loadUp(
  loader: WeightLoader,
  at: string,
  heads: number,
  q: Range,
  { rank, still, valueDim }: LatentConfig,
): Promise<Pick<LatentAttention, 'ofKeys' | 'ofValues'>> {
  const [both, ofKeys, ofValues] = ['kv_b', 'k_b', 'v_b'].map((part) => `${at}.${part}_proj.weight`) as [string, string, string];
  if (!loader.has(both)) {
    const rows = (each: number): Range => ({ from: q.from * each, to: q.to * each });
    return {
      ofKeys: await loader.linear(ofKeys, heads * rank, still, { rows: rows(rank) }),
      ofValues: await loader.linear(ofValues, heads * valueDim, rank, { rows: rows(valueDim) }),
    };
  }
  const stride = still + valueDim;
  const stored = await loader.data(both, [heads * stride, rank], { rows: { from: q.from * stride, to: q.to * stride } });
  const transposed = new Float32Array(sizeOf(q) * rank * still);
  for (let head = 0; head < sizeOf(q); head++) {
    for (let n = 0; n < still; n++) {
      const from = (head * stride + n) * rank;
      for (let r = 0; r < rank; r++) transposed[(head * rank + r) * still + n] = stored[from + r]!;
    }
  }
  return {
    ofKeys: await loader.computed(`${at}.k up`, [{ name: both, first: 0, rows: transposed }], sizeOf(q) * rank, still),
    ofValues: await loader.mergedLinear(`${at}.v up`, rowsOfHeads(both, { heads, q, stride, from: still, to: stride }), rank),
  };
}

/** Allocates activations for `rows` rows of a batch, at most `logitRows` of them with logits. */
export function latentWorkspace(
  device: Device,
  { rank, rotary, still, valueDim, queryRank }: LatentConfig,
  { heads }: Pick<AttentionShare, 'heads'>,
  rows: number,
  logitRows: number,
): LatentWorkspace {
  const make = (name: string, width: number, count = rows): Tensor => device.tensor(name, 'f32', [count, width]);
  return {
    down: make('latents', rank + rotary),
    queryDown: queryRank === undefined ? undefined : make('query latents', queryRank),
    queryNormed: queryRank === undefined ? undefined : make('normed query latents', queryRank),
    still: make('still queries', heads * still),
    rotary: make('rotary queries', heads * rotary),
    latent: make('latent queries', heads * rank),
    q: make('q', heads * (rank + rotary)),
    values: make('attended', heads * valueDim),
    gathered: make('gathered attended', heads * valueDim, logitRows),
    tiles: createHeadTiles((label, dtype, shape, values) => device.upload(label, dtype, shape, values), heads, rows),
  };
}

/** out = residual + attention(input) for the kept rows; the keys of all rows are stored in the pages. */
export function attendLatent(
  rec: Recorder,
  weights: LatentAttention,
  ws: LatentWorkspace,
  { input, layer, cosSin, scores, indices, kept, promptFrom, residual, out }: AttentionStep,
  batch: ForwardInput,
  kv: KVCache,
): void {
  const { config } = weights;
  const { rows, positions, slots, promptFrom: first } = batch;
  const { heads } = ws.tiles;
  normedLinear(rec, { input, weight: weights.down, bias: weights.downBias, out: ws.down, rows, promptFrom: first });
  const rotation = { sizes: config, cosSin, positions, rows };
  latentStore(rec, { ...rotation, x: ws.down, norm: weights.norm, eps: config.eps, slots, kv, layer });
  if (kept > 0) {
    const given = latentInput(rec, weights, ws, input, batch);
    normedLinear(rec, { input: given, weight: weights.still, out: ws.still, rows, promptFrom: first });
    normedLinear(rec, { input: given, weight: weights.rotary, out: ws.rotary, rows, promptFrom: first });
    headLinear(rec, { x: ws.still, weight: weights.ofKeys, tiles: ws.tiles, out: ws.latent, rows });
    latentQueries(rec, { ...rotation, latent: ws.latent, rotary: ws.rotary, q: ws.q, heads });
    attendPages(rec, { heads, layer, scores }, { q: ws.q, attended: ws.latent }, batch, kv);
    headLinear(rec, { x: ws.latent, weight: weights.ofValues, tiles: ws.tiles, out: ws.values, rows });
  }
  if (indices) gatherRows(rec, { x: ws.values, indices, out: ws.gathered, rows: kept });
  const x = indices ? ws.gathered : ws.values;
  linear(rec, { x, weight: weights.output, bias: weights.outputBias, residual, out, rows: kept, promptFrom });
}

/** What queries are a product of: the layer's input, or its product with a matrix of low rank, behind a norm. */
function latentInput(
  rec: Recorder,
  { queryDown: down, config }: LatentAttention,
  { queryDown: x, queryNormed: normed }: LatentWorkspace,
  input: NormedRows,
  { rows, promptFrom }: Pick<ForwardInput, 'rows' | 'promptFrom'>,
): NormedRows {
  if (!down) return input;
  normedLinear(rec, { input, weight: down.weight, bias: down.bias, out: x!, rows, promptFrom });
  return { x: x!, norm: down.norm, eps: config.eps, normed: normed! };
}
