/** Per-layer embeddings (Gemma 4): beside the residual stream, each of the L layers gets I channels that depend on the row's token. */
import { gateSlice } from '../../ops/activation.ts';
import { embedding } from '../../ops/embedding.ts';
import { linear } from '../../ops/linear.ts';
import { rmsNorm } from '../../ops/norm.ts';
import { gatherRows } from '../../ops/sample.ts';
import type { LinearWeight } from '../../ops/weight.ts';
import type { Recorder } from '../../gpu/recorder.ts';
import type { Tensor } from '../../gpu/tensor.ts';
import type { StorageRule } from '../../weights/storage.ts';
import type { WeightLoader } from '../weight-loader.ts';
import type { ForwardInput } from '../forward-input.ts';
import type { TensorMaker } from './by-turns.ts';
import { HIDDEN_ACTS } from './mlp.ts';
import type { HiddenAct } from './mlp.ts';

export interface LayerInputsConfig {
  readonly layers: number;
  readonly hidden: number;
  /** Rows of the table; token ids beyond it take the row of token 0. */
  readonly vocabulary: number;
  readonly eps: number;
  /** Channels per layer, I. */
  readonly columns: number;
  readonly activation: HiddenAct;
}

/** Weights that compute the inputs of all layers. */
export interface LayerInputs {
  /** [V, L I]. */
  readonly table: LinearWeight;
  /** [L I, C]. */
  readonly projection: LinearWeight;
  /** [I], multiplied by sqrt(1/2). */
  readonly norm: Tensor;
}

/** Weights by which a layer applies its input. */
export interface LayerInput {
  readonly gate: LinearWeight; // [I, C]
  readonly projection: LinearWeight; // [C, I]
  readonly norm: Tensor; // [C]
}

export interface LayerInputsWorkspace {
  readonly ofTokens: Tensor; // [T, L I]
  readonly projected: Tensor; // [T, L I]
  readonly inputs: Tensor; // [T, L I]
  readonly gathered: Tensor; // [B, L I] of the rows that give logits
  readonly gate: Tensor; // [T, I]
  readonly gated: Tensor; // [T, I]
  /** Hidden states before the layer's input is added. */
  readonly before: Tensor; // [T, C]
}

const TABLE = 'embed_tokens_per_layer.weight';

/**
 * Storage of the table: as large as all other weights together, yet only one row per token is read. So it is stored as q8_0 where weights
 * are asked for in f16.
 */
export const layerInputsStorage: StorageRule = (name, asked) =>
  name.endsWith(TABLE) && asked.float === 'f16' && asked.quantization === 'none' ? { ...asked, quantization: 'q8_0' } : asked;

export async function loadLayerInputs(
  loader: WeightLoader,
  { layers, hidden, vocabulary, columns }: LayerInputsConfig,
): Promise<LayerInputs> {
  const all = layers * columns;
  return {
    table: await loader.as(layerInputsStorage(TABLE, loader.storage)).table(`model.${TABLE}`, vocabulary, all),
    projection: await loader.linear('model.per_layer_model_projection.weight', all, hidden),
    norm: await loader.tensor('model.per_layer_projection_norm.weight', [columns], 0, Math.SQRT1_2),
  };
}

/** Loads a layer's weights below `at`, such as `model.layers.0`. */
export async function loadLayerInput(loader: WeightLoader, at: string, { hidden, columns }: LayerInputsConfig): Promise<LayerInput> {
  return {
    gate: await loader.linear(`${at}.per_layer_input_gate.weight`, columns, hidden),
    projection: await loader.linear(`${at}.per_layer_projection.weight`, hidden, columns),
    norm: await loader.tensor(`${at}.post_per_layer_input_norm.weight`, [hidden]),
  };
}

/** Allocates activations for `rows` rows of a batch, at most `logitRows` of them with logits. */
export function layerInputsWorkspace(
  device: TensorMaker,
  { layers, hidden, columns }: LayerInputsConfig,
  rows: number,
  logitRows: number,
): LayerInputsWorkspace {
  const make = (name: string, width: number, count = rows): Tensor => device.tensor(name, 'f32', [count, width]);
  return {
    ofTokens: make('layer inputs of tokens', layers * columns),
    projected: make('projected layer inputs', layers * columns),
    inputs: make('layer inputs', layers * columns),
    gathered: make('gathered layer inputs', layers * columns, logitRows),
    gate: make('layer input gate', columns),
    gated: make('gated layer input', columns),
    before: make('before layer input', hidden),
  };
}

/**
 * ws.inputs [T, L I] = (norm(projection(x / sqrt(C))) + sqrt(I) table[tokens]) / sqrt(2), layer by layer; x [T, C] are the scaled token
 * embeddings.
 */
export function recordLayerInputs(
  rec: Recorder,
  { table, projection, norm }: LayerInputs,
  { ofTokens, projected, inputs }: LayerInputsWorkspace,
  { layers, hidden, vocabulary: limit, columns, eps }: LayerInputsConfig,
  x: Tensor,
  { tokens, rows }: ForwardInput,
): void {
  embedding(rec, { ids: tokens, table, out: ofTokens, rows, limit, scale: Math.sqrt(columns / 2) });
  linear(rec, { x, weight: projection, out: projected, rows });
  // The norm cancels the division by sqrt(C), except in its eps, which is scaled instead.
  rmsNorm(rec, { x: projected, weight: norm, residual: ofTokens, out: inputs, eps: eps * hidden, rows: rows * layers });
}

export interface LayerInputStep {
  /** Index of the layer. */
  readonly layer: number;
  /** Factor of the result. */
  readonly scale: number;
  /** [kept] u32: the rows of the batch that ws.before has; undefined = all. */
  readonly indices: Tensor | undefined;
  readonly kept: number;
  /** [T, C]: scratch for the projection. */
  readonly branch: Tensor;
  readonly out: Tensor;
}

/** out = scale * (ws.before + norm(projection(f(gate(ws.before)) * the layer's input))). */
export function recordLayerInput(
  rec: Recorder,
  { gate, projection, norm }: LayerInput,
  ws: LayerInputsWorkspace,
  { columns, activation, eps }: LayerInputsConfig,
  { layer, scale, indices, kept, branch, out }: LayerInputStep,
): void {
  if (indices) gatherRows(rec, { x: ws.inputs, indices, out: ws.gathered, rows: kept });
  const x = indices ? ws.gathered : ws.inputs;
  linear(rec, { x: ws.before, weight: gate, out: ws.gate, rows: kept });
  gateSlice(rec, { gate: ws.gate, x, first: layer * columns, out: ws.gated, activation: HIDDEN_ACTS[activation], rows: kept });
  linear(rec, { x: ws.gated, weight: projection, out: branch, rows: kept });
  rmsNorm(rec, { x: branch, weight: norm, residual: ws.before, scale, out, eps, rows: kept });
}
