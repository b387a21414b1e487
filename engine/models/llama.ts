import type { Device } from '../gpu/device.ts';
import type { Recorder } from '../gpu/recorder.ts';
import type { Tensor } from '../gpu/tensor.ts';
import { siluMul } from '../ops/activation.ts';
import { embedding } from '../ops/embedding.ts';
import { ropeKVStore } from '../ops/kv.ts';
import type { KVCache } from '../ops/kv.ts';
import { linear } from '../ops/linear.ts';
import type { LinearWeight } from '../ops/linear.ts';
import { rmsNorm } from '../ops/norm.ts';
import { pagedAttention } from '../ops/paged-attention.ts';
import { qkNorm, ropeTable } from '../ops/rope.ts';
import { gatherRows } from '../ops/sample.ts';
import type { WeightLoader } from '../weights/weight-loader.ts';
import type { ForwardInput } from './forward-input.ts';
import { parseLlamaConfig } from './llama/config.ts';
import type { LlamaConfig } from './llama/config.ts';
import type { Decoder, DecoderDefinition } from './registry.ts';

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
  readonly embedding: LinearWeight;
  readonly layers: readonly LlamaLayer[];
  readonly norm: Tensor;
  /** The embedding itself when tied. */
  readonly head: LinearWeight;
  readonly cosSin: Tensor;
}

/** Llama, Mistral, Qwen2 and Qwen3. */
export const LLAMA: DecoderDefinition = {
  parseConfig: parseLlamaConfig,
  async load(loader, json, context) {
    const config = parseLlamaConfig(json);
    const weights = await loadWeights(loader, config, context);
    const decoder: Decoder = {
      shape: config,
      parameters: loader.parameters,
      createWorkspace(device, rows, logitRows) {
        const workspace = createWorkspace(device, config, rows, logitRows);
        return { forward: (rec, input, kv) => forward(rec, config, weights, workspace, input, kv) };
      },
    };
    return decoder;
  },
};

async function loadWeights(loader: WeightLoader, config: LlamaConfig, context: number): Promise<LlamaWeights> {
  const { hidden, vocabulary, layers: count } = config;
  const table = await loader.table('model.embed_tokens.weight', vocabulary, hidden);
  const layers: LlamaLayer[] = [];
  for (let i = 0; i < count; i++) layers.push(await loadLayer(loader, config, `model.layers.${i}`));
  const norm = await loader.tensor('model.norm.weight', [hidden]);
  const tied = config.tied ?? !loader.has('lm_head.weight');
  if (tied && loader.has('lm_head.weight')) loader.skip('lm_head.weight');
  const head = tied ? table : await loader.linear('lm_head.weight', vocabulary, hidden);
  loader.finish();
  return { embedding: table, layers, norm, head, cosSin: ropeTable(loader.device, config.rope, context) };
}

async function loadLayer(loader: WeightLoader, config: LlamaConfig, at: string): Promise<LlamaLayer> {
  const { hidden, intermediate, heads, kvHeads, headDim } = config;
  const projections = [
    { name: `${at}.self_attn.q_proj`, size: heads * headDim },
    { name: `${at}.self_attn.k_proj`, size: kvHeads * headDim },
    { name: `${at}.self_attn.v_proj`, size: kvHeads * headDim },
  ];
  const gateUp = ['gate', 'up'].map((name) => ({ name: `${at}.mlp.${name}_proj.weight`, outFeatures: intermediate }));
  // Old exports carry a buffer of frequencies; they follow from the config.
  loader.skip(`${at}.self_attn.rotary_emb.inv_freq`);
  return {
    inputNorm: await loader.tensor(`${at}.input_layernorm.weight`, [hidden]),
    qkv: await loader.mergedLinear(
      `${at}.qkv`,
      projections.map(({ name, size }) => ({ name: `${name}.weight`, outFeatures: size })),
      hidden,
    ),
    qkvBias: config.qkvBias
      ? await loader.mergedVector(
          `${at}.qkv bias`,
          projections.map(({ name, size }) => ({ name: `${name}.bias`, size })),
        )
      : undefined,
    qkNorm: config.qkNorm
      ? await loader.mergedVector(
          `${at}.qk norm`,
          ['q', 'k'].map((name) => ({ name: `${at}.self_attn.${name}_norm.weight`, size: headDim })),
        )
      : undefined,
    output: await loader.linear(`${at}.self_attn.o_proj.weight`, hidden, heads * headDim),
    outputBias: config.outputBias ? await loader.tensor(`${at}.self_attn.o_proj.bias`, [hidden]) : undefined,
    postNorm: await loader.tensor(`${at}.post_attention_layernorm.weight`, [hidden]),
    gateUp: await loader.mergedLinear(`${at}.gate_up`, gateUp, hidden),
    down: await loader.linear(`${at}.mlp.down_proj.weight`, hidden, intermediate),
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
  readonly gathered: Tensor; // [B, C]
  readonly last: Tensor; // [B, C] normed
  readonly logits: Tensor; // [B, V]
}

function createWorkspace(device: Device, config: LlamaConfig, rows: number, logitRows: number): LlamaWorkspace {
  const { hidden, heads, kvHeads, headDim, intermediate, vocabulary } = config;
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
    gathered: make('gathered', hidden, logitRows),
    last: make('last', hidden, logitRows),
    logits: make('logits', vocabulary, logitRows),
  };
}

function forward(rec: Recorder, config: LlamaConfig, weights: LlamaWeights, ws: LlamaWorkspace, input: ForwardInput, kv: KVCache): Tensor {
  const { eps } = config;
  const { rows, trace } = input;
  embedding(rec, { ids: input.tokens, table: weights.embedding, out: ws.hidden, rows });
  trace?.('embedding', ws.hidden);
  weights.layers.forEach((layer, i) => {
    rmsNorm(rec, { x: ws.hidden, weight: layer.inputNorm, out: ws.normed, eps, rows });
    attention(rec, config, weights, i, ws, input, kv);
    linear(rec, { x: ws.attended, weight: layer.output, bias: layer.outputBias, residual: ws.hidden, out: ws.middle, rows });
    rmsNorm(rec, { x: ws.middle, weight: layer.postNorm, out: ws.normed, eps, rows });
    linear(rec, { x: ws.normed, weight: layer.gateUp, out: ws.gateUp, rows });
    siluMul(rec, { gateUp: ws.gateUp, out: ws.activated, rows });
    linear(rec, { x: ws.activated, weight: layer.down, residual: ws.middle, out: ws.hidden, rows });
    trace?.(`layer ${i}`, ws.hidden);
  });
  const { logitIndices: indices, logitRows } = input;
  if (indices) gatherRows(rec, { x: ws.hidden, indices, out: ws.gathered, rows: logitRows });
  rmsNorm(rec, { x: indices ? ws.gathered : ws.hidden, weight: weights.norm, out: ws.last, eps, rows: logitRows });
  linear(rec, { x: ws.last, weight: weights.head, out: ws.logits, rows: logitRows });
  trace?.('logits', ws.logits);
  return ws.logits;
}

/** ws.attended = attention of ws.normed over the pages, which get this batch's keys and values first. */
function attention(
  rec: Recorder,
  { heads, kvHeads, eps }: LlamaConfig,
  { layers, cosSin }: LlamaWeights,
  index: number,
  ws: LlamaWorkspace,
  input: ForwardInput,
  kv: KVCache,
): void {
  const layer = layers[index]!;
  const { rows, positions, slots, blockTable, tiles, decodeTiles, prefillTiles, prefillTileRows, split } = input;
  linear(rec, { x: ws.normed, weight: layer.qkv, bias: layer.qkvBias, out: ws.qkv, rows });
  if (layer.qkNorm) qkNorm(rec, { qkv: ws.qkv, weight: layer.qkNorm, heads, kvHeads, eps, rows });
  ropeKVStore(rec, { qkv: ws.qkv, cosSin, positions, slots, q: ws.q, kv, layer: index, heads, rows });
  const shared = { q: ws.q, kv, layer: index, blockTable, tiles, out: ws.attended, heads };
  if (decodeTiles > 0) pagedAttention(rec, { ...shared, firstTile: 0, tileCount: decodeTiles, tileRows: 1, split });
  if (prefillTiles > 0) {
    pagedAttention(rec, { ...shared, firstTile: decodeTiles, tileCount: prefillTiles, tileRows: prefillTileRows });
  }
}
