import { EngineError } from '../../errors.ts';
import type { Json } from '../../util/json.ts';
import type { RopeConfig } from '../../ops/rope.ts';
import { expectValue, integer, layerTypes, number, tiedByDefault } from '../config-fields.ts';
import type { DecoderDefinition } from '../decoder.ts';
import { decoderStack } from '../layers/decoder-stack.ts';
import { gatedMlp } from '../layers/mlp.ts';
import type { DecoderStackConfig, LayerKind } from '../layers/stack-config.ts';
import { parseLlamaConfig } from '../llama/config.ts';
import { withTensors } from '../text-part.ts';
import type { WeightLoader } from '../weight-loader.ts';

/** Defaults of CohereConfig and Cohere2Config (transformers, configuration_cohere.py and configuration_cohere2.py). */
const DEFAULTS = { max_position_embeddings: 8192, eos_token_id: 255_001 };
const LOGIT_SCALE = 0.0625;
const EPS = 1e-5;
const COHERE2 = { window: 4096, pattern: 4 };

/** Reads config.json of Cohere's models. Throws EngineError naming the field that is wrong or beyond what the forward pass does. */
function parseCohereConfig(json: Json): DecoderStackConfig {
  const isSecond = json['model_type'] === 'cohere2';
  // Norms of queries and keys are layer norms with a weight for every channel of every head.
  expectValue(json, 'use_qk_norm', false);
  const eps = number(json, 'layer_norm_eps', EPS);
  // Windows are read below, not as Llama's.
  const own = { rms_norm_eps: eps, ...(isSecond && { sliding_window: undefined, layer_types: undefined }) };
  const config = parseLlamaConfig({ ...DEFAULTS, ...json, ...own });
  return {
    ...config,
    layerNorm: { hasBias: false },
    isParallel: true,
    isInterleaved: true,
    tied: tiedByDefault(json),
    logitScale: number(json, 'logit_scale', LOGIT_SCALE),
    ...(isSecond && { kinds: layerKinds(json, config) }),
  };
}

/** Layers with a window rotate queries and keys; the others, every fourth, do neither (Cohere2Attention). */
function layerKinds(json: Json, { layers, rope }: DecoderStackConfig): readonly LayerKind[] {
  const types = layerTypes(json, layers, ['full_attention', 'sliding_attention']);
  const pattern = integer(json, 'sliding_window_pattern', COHERE2.pattern);
  const window = json['sliding_window'] === null ? undefined : integer(json, 'sliding_window', COHERE2.window);
  const slides = (layer: number): boolean => (types ? types[layer] === 'sliding_attention' : (layer + 1) % pattern !== 0);
  const unrotated: RopeConfig = { ...rope, scaling: { kind: 'none' } };
  return Array.from({ length: layers }, (_, layer) => (slides(layer) && window !== undefined ? { rope, window } : { rope: unrotated }));
}

const STACK = decoderStack({ parseConfig: parseCohereConfig, mlp: gatedMlp('silu') });

/** Command R and Aya, Command R7B and Command A: attention and MLP in parallel behind one layer norm. Shapes and names: MODEL.md. */
export const COHERE: DecoderDefinition = {
  ...STACK,
  async load(loader, json, ...rest) {
    return STACK.load(json['attention_bias'] === true ? loader : await withoutZeros(loader), json, ...rest);
  },
};

/** A loader without the biases that no layer has, which published files hold as zeros (llama.cpp: conversion/command_r.py); throws EngineError if one is not zero. */
async function withoutZeros(loader: WeightLoader): Promise<WeightLoader> {
  const names = loader.checkpoint.names();
  const isBias = (name: string): boolean => name.endsWith('.bias');
  for (const name of names.filter(isBias)) {
    const values = await loader.checkpoint.read(name);
    if (values.some((value) => value !== 0)) throw new EngineError('unsupported', `tensor ${name} is not zero, in a model without biases`);
  }
  return withTensors(
    loader,
    names.filter((name) => !isBias(name)),
  );
}
