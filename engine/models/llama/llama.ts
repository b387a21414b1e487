import type { Device } from '../../gpu/device.ts';
import type { Recorder } from '../../gpu/recorder.ts';
import type { Tensor } from '../../gpu/tensor.ts';
import { siluMul } from '../../ops/activation.ts';
import { embedding } from '../../ops/embedding.ts';
import { ropeKVStore } from '../../ops/kv.ts';
import type { KVCache } from '../../ops/kv.ts';
import { linear } from '../../ops/linear.ts';
import type { LinearWeight } from '../../ops/linear.ts';
import { rmsNorm } from '../../ops/norm.ts';
import { pagedAttention } from '../../ops/paged-attention.ts';
import { qkNorm, ropeTable } from '../../ops/rope.ts';
import { gatherRows } from '../../ops/sample.ts';
import { sizeOf } from '../../util/math.ts';
import type { Range } from '../../util/math.ts';
import type { WeightLoader } from '../../weights/weight-loader.ts';
import type { ForwardInput } from '../forward-input.ts';
import { parseLlamaConfig } from './config.ts';
import type { LlamaConfig } from './config.ts';
import type { Decoder, DecoderDefinition, Stage } from '../decoder.ts';
import { headShare, shareOf, wholeShard } from '../shard.ts';
import type { Shard } from '../shard.ts';

/** q, k, v and gate, up are merged at load: each pair reads the same input. Shapes and names: llama/MODEL.md. */
interface LlamaLayer {
  readonly inputNorm: Tensor;
  readonly qkv: LinearWeight;
  readonly qkvBias: Tensor | undefined;
  /** [2, D]: of queries, of keys. */
  readonly qkNorm: Tensor | undefined;
  readonly output: LinearWeight;
  readonly outputBias: Tensor | undefined;
  readonly postNorm: Tensor;
  readonly gateUp: LinearWeight;
  readonly down: LinearWeight;
}

interface LlamaWeights {
  /** On the shards with the first or the last layer. */
  readonly embedding: LinearWeight | undefined;
  readonly layers: readonly LlamaLayer[];
  readonly head: { readonly norm: Tensor; readonly weight: LinearWeight } | undefined;
  /** Values that are held here as well as on the shard that counts them. */
  readonly repeated: number;
  readonly cosSin: Tensor;
}

/** What a shard holds of the model. */
interface LlamaPart {
  readonly shard: Shard;
  /** The model's own sizes, and the shard's: layers, heads and intermediate channels. */
  readonly whole: LlamaConfig;
  readonly local: LlamaConfig;
  readonly q: Range;
  readonly kv: Range;
  readonly intermediate: Range;
  readonly tokens: Range;
  readonly isFirst: boolean;
  readonly isLast: boolean;
}

/** Llama, Mistral, Qwen2 and Qwen3. */
export const LLAMA: DecoderDefinition = {
  parseConfig: parseLlamaConfig,
  async load(loader, json, context, shard) {
    const config = parseLlamaConfig(json);
    const part = partOf(config, shard ?? wholeShard(config.layers));
    const weights = await loadWeights(loader, part, context);
    const decoder: Decoder = {
      shape: part.local,
      tokens: part.isLast ? part.tokens : { from: 0, to: 0 },
      parameters: loader.parameters - weights.repeated,
      createWorkspace(device, rows, logitRows) {
        const ws = createWorkspace(device, part, rows, logitRows);
        const cut = (input: ForwardInput, kv: KVCache): readonly Stage[] => stages(part, weights, ws, input, kv);
        return {
          hidden: ws.hidden,
          logits: ws.logits,
          stages: cut,
          forward(rec, input, kv) {
            for (const stage of cut(input, kv)) stage.record(rec);
            return ws.logits!;
          },
        };
      },
    };
    return decoder;
  },
};

/** MLP columns are dealt out in units the kernels read at once. */
const MLP_UNIT = 4;
/** Tokens are dealt out in words of a grammar's mask. */
const TOKEN_UNIT = 32;

function partOf(whole: LlamaConfig, shard: Shard): LlamaPart {
  const { q, kv } = headShare(whole.heads, whole.kvHeads, shard);
  const intermediate = shareOf('MLP columns', whole.intermediate, MLP_UNIT, shard);
  const tokens = shareOf('tokens', whole.vocabulary, TOKEN_UNIT, shard);
  const heads = sizeOf(q);
  const kvHeads = sizeOf(kv);
  const widestRow = Math.max(2 * sizeOf(intermediate), (heads + 2 * kvHeads) * whole.headDim);
  const local = { ...whole, layers: sizeOf(shard.layers), heads, kvHeads, intermediate: sizeOf(intermediate), widestRow };
  const isFirst = shard.layers.from === 0;
  return { shard, whole, local, q, kv, intermediate, tokens, isFirst, isLast: shard.layers.to === whole.layers };
}

async function loadWeights(loader: WeightLoader, part: LlamaPart, context: number): Promise<LlamaWeights> {
  const { shard, whole, tokens, isFirst, isLast } = part;
  const { hidden, vocabulary } = whole;
  const tied = whole.tied ?? !loader.has('lm_head.weight');
  const names = { table: 'model.embed_tokens.weight', norm: 'model.norm.weight', head: 'lm_head.weight' };
  const table = isFirst || (isLast && tied) ? await loader.table(names.table, vocabulary, hidden, tokens) : undefined;
  const layers: LlamaLayer[] = [];
  for (let i = 0; i < whole.layers; i++) {
    const at = `model.layers.${i}`;
    if (i >= shard.layers.from && i < shard.layers.to) layers.push(await loadLayer(loader, part, at));
    else loader.skipAll(`${at}.`);
  }
  let head: LlamaWeights['head'];
  if (isLast) {
    const weight = tied ? table! : await loader.linear(names.head, vocabulary, hidden, { rows: tokens });
    head = { norm: await loader.tensor(names.norm, [hidden]), weight };
  }
  if (!isLast) loader.skip(names.norm);
  if (tied || !isLast) loader.skip(names.head);
  if (!table) loader.skip(names.table);
  loader.finish();
  const repeated = table && !isFirst ? vocabulary * hidden : 0;
  return { embedding: table, layers, head, repeated, cosSin: ropeTable(loader.device, whole.rope, context) };
}

async function loadLayer(loader: WeightLoader, part: LlamaPart, at: string): Promise<LlamaLayer> {
  const { whole, q, kv, shard } = part;
  const { hidden, intermediate, headDim } = whole;
  const projection = (name: string, heads: number, kept: Range) => ({
    name: `${at}.self_attn.${name}_proj`,
    size: heads * headDim,
    rows: { from: kept.from * headDim, to: kept.to * headDim },
  });
  const projections = [projection('q', whole.heads, q), projection('k', whole.kvHeads, kv), projection('v', whole.kvHeads, kv)];
  const columns = projections[0]!.rows;
  const gateUp = ['gate', 'up'].map((name) => ({
    name: `${at}.mlp.${name}_proj.weight`,
    outFeatures: intermediate,
    rows: part.intermediate,
  }));
  // Old exports carry a buffer of frequencies; they follow from the config.
  loader.skip(`${at}.self_attn.rotary_emb.inv_freq`);
  // The bias is added once, by the first rank.
  const outputBias = whole.outputBias && shard.rank === 0;
  if (whole.outputBias && !outputBias) loader.skip(`${at}.self_attn.o_proj.bias`);
  return {
    inputNorm: await loader.tensor(`${at}.input_layernorm.weight`, [hidden]),
    qkv: await loader.mergedLinear(
      `${at}.qkv`,
      projections.map(({ name, size, rows }) => ({ name: `${name}.weight`, outFeatures: size, rows })),
      hidden,
    ),
    qkvBias: whole.qkvBias
      ? await loader.mergedVector(
          `${at}.qkv bias`,
          projections.map(({ name, size, rows }) => ({ name: `${name}.bias`, size, rows })),
        )
      : undefined,
    qkNorm: whole.qkNorm
      ? await loader.mergedVector(
          `${at}.qk norm`,
          ['q', 'k'].map((name) => ({ name: `${at}.self_attn.${name}_norm.weight`, size: headDim })),
        )
      : undefined,
    output: await loader.linear(`${at}.self_attn.o_proj.weight`, hidden, whole.heads * headDim, { columns }),
    outputBias: outputBias ? await loader.tensor(`${at}.self_attn.o_proj.bias`, [hidden]) : undefined,
    postNorm: await loader.tensor(`${at}.post_attention_layernorm.weight`, [hidden]),
    gateUp: await loader.mergedLinear(`${at}.gate_up`, gateUp, hidden),
    down: await loader.linear(`${at}.mlp.down_proj.weight`, hidden, intermediate, { columns: part.intermediate }),
  };
}

/** Activations, made once for the largest batch. The residual stream alternates between two tensors: no dispatch reads what it writes. */
interface LlamaWorkspace {
  readonly hidden: Tensor; // [T, C]
  readonly middle: Tensor; // [T, C] after attention
  readonly normed: Tensor; // [T, C]
  readonly qkv: Tensor; // [T, (H + 2 K) D]
  readonly q: Tensor; // [T, H D]
  readonly attended: Tensor; // [T, H D]
  readonly gateUp: Tensor; // [T, 2 I]
  readonly activated: Tensor; // [T, I]
  readonly gatheredHidden: Tensor; // [B, C]
  readonly gatheredAttended: Tensor; // [B, H D]
  readonly last: Tensor; // [B, C] normed
  readonly logits: Tensor | undefined; // [B, V]
}

function createWorkspace(device: Device, { local, tokens, isLast }: LlamaPart, rows: number, logitRows: number): LlamaWorkspace {
  const { hidden, heads, kvHeads, headDim, intermediate } = local;
  const make = (name: string, columns: number, count = rows): Tensor => device.tensor(name, 'f32', [count, columns]);
  return {
    hidden: make('hidden', hidden),
    middle: make('middle', hidden),
    normed: make('normed', hidden),
    qkv: make('qkv', (heads + 2 * kvHeads) * headDim),
    q: make('q', heads * headDim),
    attended: make('attended', heads * headDim),
    gateUp: make('gate_up', 2 * intermediate),
    activated: make('activated', intermediate),
    gatheredHidden: make('gathered hidden', hidden, logitRows),
    gatheredAttended: make('gathered attended', heads * headDim, logitRows),
    last: make('last', hidden, logitRows),
    logits: isLast ? make('logits', sizeOf(tokens), logitRows) : undefined,
  };
}

/** The residual is added by the first rank, so that the sum of all parts is the new hidden state. */
function stages(part: LlamaPart, weights: LlamaWeights, ws: LlamaWorkspace, input: ForwardInput, kv: KVCache): readonly Stage[] {
  const { shard, tokens, local, isFirst, isLast } = part;
  const { eps } = local;
  const { rows, trace } = input;
  const residual = (x: Tensor): Tensor | undefined => (shard.rank === 0 ? x : undefined);
  const firstId = shard.ranks > 1 ? { firstId: tokens.from } : {};
  const list: Stage[] = [];
  const add = (tensor: Tensor, summed: number, record: (rec: Recorder) => void): void =>
    void list.push({ record, partial: { tensor, rows: summed } });
  if (isFirst) {
    add(ws.hidden, rows, (rec) => {
      embedding(rec, { ids: input.tokens, table: weights.embedding!, out: ws.hidden, rows, ...firstId });
      trace?.('embedding', ws.hidden);
    });
  }
  weights.layers.forEach((layer, i) => {
    // Of the last layer's rows, those that give no logits leave nothing but their keys and values.
    const indices = isLast && i === weights.layers.length - 1 ? input.logitIndices : undefined;
    const kept = indices ? input.logitRows : rows;
    add(ws.middle, kept, (rec) => {
      rmsNorm(rec, { x: ws.hidden, weight: layer.inputNorm, out: ws.normed, eps, rows });
      storeKeysValues(rec, local, weights, i, ws, input, kv);
      if (kept > 0) attend(rec, local, i, ws, input, kv);
      if (indices) {
        gatherRows(rec, { x: ws.attended, indices, out: ws.gatheredAttended, rows: kept });
        gatherRows(rec, { x: ws.hidden, indices, out: ws.gatheredHidden, rows: kept });
      }
      const [x, before] = indices ? [ws.gatheredAttended, ws.gatheredHidden] : [ws.attended, ws.hidden];
      linear(rec, { x, weight: layer.output, bias: layer.outputBias, residual: residual(before), out: ws.middle, rows: kept });
    });
    add(ws.hidden, kept, (rec) => {
      rmsNorm(rec, { x: ws.middle, weight: layer.postNorm, out: ws.normed, eps, rows: kept });
      linear(rec, { x: ws.normed, weight: layer.gateUp, out: ws.gateUp, rows: kept });
      siluMul(rec, { gateUp: ws.gateUp, out: ws.activated, rows: kept });
      linear(rec, { x: ws.activated, weight: layer.down, residual: residual(ws.middle), out: ws.hidden, rows: kept });
      trace?.(`layer ${i}`, ws.hidden);
    });
  });
  if (isLast) list.push({ record: (rec) => head(rec, part, weights, ws, input) });
  return list;
}

/** ws.logits of the first `logitRows` rows, which the last layer leaves. */
function head(rec: Recorder, { local }: LlamaPart, weights: LlamaWeights, ws: LlamaWorkspace, input: ForwardInput): void {
  const { logitRows: rows, trace } = input;
  const { norm, weight } = weights.head!;
  rmsNorm(rec, { x: ws.hidden, weight: norm, out: ws.last, eps: local.eps, rows });
  linear(rec, { x: ws.last, weight, out: ws.logits!, rows });
  trace?.('logits', ws.logits!);
}

/** ws.q and the pages = queries, keys and values of ws.normed. */
function storeKeysValues(
  rec: Recorder,
  { heads, kvHeads, eps }: LlamaConfig,
  { layers, cosSin }: LlamaWeights,
  index: number,
  ws: LlamaWorkspace,
  { rows, positions, slots }: ForwardInput,
  kv: KVCache,
): void {
  const layer = layers[index]!;
  linear(rec, { x: ws.normed, weight: layer.qkv, bias: layer.qkvBias, out: ws.qkv, rows });
  if (layer.qkNorm) qkNorm(rec, { qkv: ws.qkv, weight: layer.qkNorm, heads, kvHeads, eps, rows });
  ropeKVStore(rec, { qkv: ws.qkv, cosSin, positions, slots, q: ws.q, kv, layer: index, heads, rows });
}

/** ws.attended = attention of ws.q over the pages. */
function attend(rec: Recorder, { heads }: LlamaConfig, index: number, ws: LlamaWorkspace, input: ForwardInput, kv: KVCache): void {
  const { blockTable, tiles, decodeTiles, prefillTiles, prefillTileRows, split } = input;
  const shared = { q: ws.q, kv, layer: index, blockTable, tiles, out: ws.attended, heads };
  if (decodeTiles > 0) pagedAttention(rec, { ...shared, firstTile: 0, tileCount: decodeTiles, tileRows: 1, split });
  if (prefillTiles > 0) {
    pagedAttention(rec, { ...shared, firstTile: decodeTiles, tileCount: prefillTiles, tileRows: prefillTileRows });
  }
}
