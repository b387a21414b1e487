import type { Json } from '../../util/json.ts';
import { expectValue, number } from '../config-fields.ts';
import { decoderStack } from '../layers/decoder-stack.ts';
import { gatedMlp } from '../layers/mlp.ts';
import type { DecoderStackConfig } from '../layers/stack-config.ts';
import { parseLlamaConfig } from '../llama/config.ts';

/** Defaults of StableLmConfig (transformers, configuration_stablelm.py). */
const DEFAULTS = { num_key_value_heads: 32, max_position_embeddings: 4096, partial_rotary_factor: 0.25, tie_word_embeddings: false, eos_token_id: 0 }; // prettier-ignore
const EPS = 1e-5;

/** Reads config.json of StableLM. Throws EngineError naming the field that is wrong or beyond what the forward pass does. */
function parseStableLmConfig(json: Json): DecoderStackConfig {
  // A layer norm for every head.
  expectValue(json, 'qk_layernorm', false);
  const own = { rms_norm_eps: number(json, 'layer_norm_eps', EPS), attention_bias: false };
  return {
    ...parseLlamaConfig({ ...DEFAULTS, ...json, ...own }),
    layerNorm: { hasBias: true },
    isParallel: json['use_parallel_residual'] === true,
    qkvBias: json['use_qkv_bias'] === true,
  };
}

/** StableLM 2 and StableLM 3B: Llama with layer norms and partial rotary embeddings. Shapes and names: MODEL.md. */
export const STABLELM = decoderStack({ parseConfig: parseStableLmConfig, mlp: gatedMlp('silu') });
