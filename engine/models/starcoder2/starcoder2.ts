import type { Json } from '../../util/json.ts';
import { number, tiedByDefault } from '../config-fields.ts';
import { decoderStack } from '../layers/decoder-stack.ts';
import { plainMlp } from '../layers/mlp.ts';
import type { DecoderStackConfig } from '../layers/stack-config.ts';
import { parseLlamaConfig } from '../llama/config.ts';

/** Defaults of Starcoder2Config (transformers, configuration_starcoder2.py). */
const DEFAULTS = { num_key_value_heads: 2, max_position_embeddings: 4096, eos_token_id: 50_256 };
const EPS = 1e-5;

/** Reads config.json of StarCoder2. Throws EngineError naming the field that is wrong or beyond what the forward pass does. */
function parseStarcoder2Config(json: Json): DecoderStackConfig {
  const hasBias = json['use_bias'] !== false;
  const own = { rms_norm_eps: number(json, 'norm_epsilon', EPS), attention_bias: hasBias };
  return {
    ...parseLlamaConfig({ ...DEFAULTS, ...json, ...own }),
    layerNorm: { hasBias: true },
    mlpBias: hasBias,
    tied: tiedByDefault(json),
  };
}

/** StarCoder2: Llama with layer norms, biases everywhere, and an MLP without a gate. Shapes and names: MODEL.md. */
export const STARCODER2 = decoderStack({
  parseConfig: parseStarcoder2Config,
  mlp: plainMlp('gelu_pytorch_tanh', { up: 'c_fc', down: 'c_proj' }),
});
