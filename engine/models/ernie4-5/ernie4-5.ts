import type { Json } from '../../util/json.ts';
import { tiedByDefault } from '../config-fields.ts';
import { decoderStack } from '../layers/decoder-stack.ts';
import { gatedMlp } from '../layers/mlp.ts';
import type { DecoderStackConfig } from '../layers/stack-config.ts';
import { parseLlamaConfig } from '../llama/config.ts';

/** Defaults of Ernie4_5Config (transformers, configuration_ernie4_5.py). */
const DEFAULTS = { num_key_value_heads: 2, head_dim: 128, max_position_embeddings: 131_072, rms_norm_eps: 1e-5, eos_token_id: 2 };

/** Reads config.json of ERNIE 4.5. Throws EngineError naming the field that is wrong or beyond what the forward pass does. */
export function parseErnieConfig(json: Json): DecoderStackConfig {
  const hasBias = json['use_bias'] === true;
  return {
    ...parseLlamaConfig({ ...DEFAULTS, ...json, attention_bias: hasBias, mlp_bias: undefined }),
    mlpBias: hasBias,
    isInterleaved: true,
    tied: tiedByDefault(json),
  };
}

/** ERNIE 4.5 without experts: Llama with pairs of adjacent channels. Shapes and names: MODEL.md. */
export const ERNIE4_5 = decoderStack({ parseConfig: parseErnieConfig, mlp: gatedMlp('silu') });
