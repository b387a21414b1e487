import type { Json } from '../../util/json.ts';
import { expectValue } from '../config-fields.ts';
import { withExpertsOnly } from '../experts-config.ts';
import { decoderStack } from '../layers/decoder-stack.ts';
import { expertMlp } from '../layers/experts.ts';
import type { DecoderStackConfig } from '../layers/stack-config.ts';
import { parseLlamaConfig } from '../llama/config.ts';

/** Defaults of OlmoeConfig (transformers, configuration_olmoe.py). */
const DEFAULTS = {
  vocab_size: 50_304,
  hidden_size: 2048,
  intermediate_size: 2048,
  num_hidden_layers: 16,
  num_attention_heads: 16,
  max_position_embeddings: 4096,
  rms_norm_eps: 1e-5,
};

/** Reads config.json of OLMoE. Throws EngineError naming the field that is wrong or beyond what the forward pass does. */
function parseOlmoeConfig(json: Json): DecoderStackConfig {
  expectValue(json, 'clip_qkv', null);
  const settings = { ...DEFAULTS, ...json };
  const config: DecoderStackConfig = { ...parseLlamaConfig(settings), qkNorm: 'full' };
  return withExpertsOnly(config, settings, { count: 64, perRow: 8 }, json['norm_topk_prob'] === true);
}

/** OLMoE: Llama with norms over all heads of queries and keys, and experts in every layer. Shapes and names: MODEL.md. */
export const OLMOE = decoderStack({ parseConfig: parseOlmoeConfig, mlp: expertMlp('silu') });
