/** ALBERT (Lan et al. 2020) over phonemes: the weights of one layer, applied `layers` times; post-norm, gelu_new. */
import type { Device } from '../../gpu/device.ts';
import type { Recorder } from '../../gpu/recorder.ts';
import type { Tensor } from '../../gpu/tensor.ts';
import { denseAttention } from '../../ops/dense-attention.ts';
import type { Tiles } from '../../ops/dense-attention.ts';
import { add } from '../../ops/elementwise.ts';
import { embedding } from '../../ops/embedding.ts';
import { linear } from '../../ops/linear.ts';
import type { LinearWeight } from '../../ops/weight.ts';
import { layerNorm } from '../../ops/norm.ts';
import { expandRows } from '../../ops/rows.ts';
import type { WeightLoader } from '../weight-loader.ts';
import type { AlbertConfig } from './config.ts';

const EPS = 1e-12;

interface Norm {
  readonly weight: Tensor;
  readonly bias: Tensor;
}

interface Dense {
  readonly weight: LinearWeight;
  readonly bias: Tensor;
}

export interface AlbertWeights {
  readonly words: LinearWeight;
  /** [positions, embedding]: learned positions plus the one token type in use. */
  readonly positions: Tensor;
  readonly embeddingNorm: Norm;
  readonly mapping: Dense;
  readonly qkv: Dense;
  readonly attention: Dense;
  readonly attentionNorm: Norm;
  readonly up: Dense;
  readonly down: Dense;
  readonly outNorm: Norm;
}

/** Loads `bert.*`; the pooler exists in checkpoints and is not used. */
export async function loadAlbert(weights: WeightLoader, config: AlbertConfig, symbols: number): Promise<AlbertWeights> {
  const { hidden, intermediate, embedding: width, positions } = config;
  const norm = async (name: string, size: number): Promise<Norm> => ({
    weight: await weights.tensor(`${name}.weight`, [size]),
    bias: await weights.tensor(`${name}.bias`, [size]),
  });
  const dense = async (name: string, out: number, input: number): Promise<Dense> => ({
    weight: await weights.linear(`${name}.weight`, out, input),
    bias: await weights.tensor(`${name}.bias`, [out]),
  });
  const layer = 'bert.encoder.albert_layer_groups.0.albert_layers.0';
  const parts = ['query', 'key', 'value'].map((part) => `${layer}.attention.${part}`);
  const table = await weights.data('bert.embeddings.position_embeddings.weight', [positions, width]);
  const types = await weights.data('bert.embeddings.token_type_embeddings.weight', [2, width]);
  for (const name of ['bert.pooler.weight', 'bert.pooler.bias']) weights.skip(name);
  const summed = table.map((value, i) => value + types[i % width]!);
  return {
    words: await weights.table('bert.embeddings.word_embeddings.weight', symbols, width),
    positions: weights.device.upload('bert positions', 'f32', [positions, width], summed),
    embeddingNorm: await norm('bert.embeddings.LayerNorm', width),
    mapping: await dense('bert.encoder.embedding_hidden_mapping_in', hidden, width),
    qkv: {
      weight: await weights.mergedLinear(`${layer}.qkv`, parts.map((name) => ({ name: `${name}.weight`, outFeatures: hidden })), hidden), // prettier-ignore
      bias: await weights.mergedVector(`${layer}.qkv bias`, parts.map((name) => ({ name: `${name}.bias`, size: hidden }))), // prettier-ignore
    },
    attention: await dense(`${layer}.attention.dense`, hidden, hidden),
    attentionNorm: await norm(`${layer}.attention.LayerNorm`, hidden),
    up: await dense(`${layer}.ffn`, intermediate, hidden),
    down: await dense(`${layer}.ffn_output`, hidden, intermediate),
    outNorm: await norm(`${layer}.full_layer_layer_norm`, hidden),
  };
}

/** Activations, [tokens, ...] f32. */
export interface AlbertWorkspace {
  readonly words: Tensor;
  readonly places: Tensor;
  readonly embedded: Tensor;
  /** The result, [tokens, hidden]. */
  readonly hidden: Tensor;
  readonly attended: Tensor;
  readonly sum: Tensor;
  readonly qkv: Tensor;
  readonly context: Tensor;
  readonly up: Tensor;
}

/** Allocates activations for at most `tokens` tokens. */
export function createAlbertWorkspace(
  device: Device,
  { hidden, intermediate, embedding: width }: AlbertConfig,
  tokens: number,
): AlbertWorkspace {
  const tensor = (label: string, columns: number): Tensor => device.tensor(`bert ${label}`, 'f32', [tokens, columns]);
  return {
    words: tensor('words', width),
    places: tensor('places', width),
    embedded: tensor('embedded', width),
    hidden: tensor('hidden', hidden),
    attended: tensor('attended', hidden),
    sum: tensor('sum', hidden),
    qkv: tensor('qkv', 3 * hidden),
    context: tensor('context', hidden),
    up: tensor('up', intermediate),
  };
}

export interface AlbertArgs {
  /** [tokens] u32: phoneme ids, and the position of each in its sentence. */
  readonly ids: Tensor;
  readonly positions: Tensor;
  /** Number of tokens of all sentences together. */
  readonly tokens: number;
  /** Attention tiles: a token attends to its own sentence. */
  readonly over: Tiles;
}

/** Computes ws.hidden [tokens, hidden] from phoneme ids. */
export function albert(rec: Recorder, w: AlbertWeights, config: AlbertConfig, ws: AlbertWorkspace, args: AlbertArgs): void {
  const { hidden, heads, layers, embedding: width } = config;
  const { ids, positions, tokens, over } = args;
  embedding(rec, { ids, table: w.words, out: ws.words, rows: tokens });
  expandRows(rec, { x: w.positions, index: positions, out: ws.places, rows: tokens });
  add(rec, { a: ws.words, b: ws.places, out: ws.embedded, count: tokens * width });
  layerNorm(rec, { x: ws.embedded, ...w.embeddingNorm, out: ws.words, eps: EPS, rows: tokens });
  linear(rec, { x: ws.words, ...w.mapping, out: ws.hidden, rows: tokens });
  for (let layer = 0; layer < layers; layer++) {
    linear(rec, { x: ws.hidden, ...w.qkv, out: ws.qkv, rows: tokens });
    const k = { tensor: ws.qkv, column: hidden };
    const v = { tensor: ws.qkv, column: 2 * hidden };
    denseAttention(rec, { q: { tensor: ws.qkv }, k, v, out: ws.context, heads, headDim: hidden / heads, over });
    linear(rec, { x: ws.context, ...w.attention, residual: ws.hidden, out: ws.sum, rows: tokens });
    layerNorm(rec, { x: ws.sum, ...w.attentionNorm, out: ws.attended, eps: EPS, rows: tokens });
    linear(rec, { x: ws.attended, ...w.up, out: ws.up, activation: 'gelu_tanh', rows: tokens });
    linear(rec, { x: ws.up, ...w.down, residual: ws.attended, out: ws.sum, rows: tokens });
    layerNorm(rec, { x: ws.sum, ...w.outNorm, out: ws.hidden, eps: EPS, rows: tokens });
  }
}
