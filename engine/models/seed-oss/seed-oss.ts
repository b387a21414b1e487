import type { Json } from '../../util/json.ts';
import { decoderStack } from '../layers/decoder-stack.ts';
import { gatedMlp } from '../layers/mlp.ts';
import type { DecoderStackConfig } from '../layers/stack-config.ts';
import { parseLlamaConfig } from '../llama/config.ts';

/** Defaults of SeedOssConfig (transformers, configuration_seed_oss.py). */
const DEFAULTS = {
  num_key_value_heads: 8,
  head_dim: 128,
  max_position_embeddings: 524_288,
  attention_bias: true,
  tie_word_embeddings: false,
  eos_token_id: 2,
};

/** Reads config.json of Seed-OSS. Throws EngineError naming the field that is wrong or beyond what the forward pass does. */
function parseSeedOssConfig(json: Json): DecoderStackConfig {
  return {
    ...parseLlamaConfig({ ...DEFAULTS, ...json, mlp_bias: undefined }),
    outputBias: json['attention_out_bias'] === true,
    mlpBias: json['mlp_bias'] === true,
  };
}

/** Seed-OSS: Llama with biases of queries, keys and values. Shapes and names: MODEL.md. */
export const SEED_OSS = decoderStack({ parseConfig: parseSeedOssConfig, mlp: gatedMlp('silu') });
