import type { Json } from '../../util/json.ts';
import { withExpertsOnly } from '../experts-config.ts';
import { decoderStack } from '../layers/decoder-stack.ts';
import { expertMlp } from '../layers/experts.ts';
import type { DecoderStackConfig } from '../layers/stack-config.ts';
import { parseLlamaConfig } from '../llama/config.ts';
import { NORMS } from '../olmo/olmo.ts';

/** Defaults of FlexOlmoConfig that parseLlamaConfig has no others for (transformers, configuration_flex_olmo.py). */
const DEFAULTS = {
  vocab_size: 100_352,
  hidden_size: 4096,
  intermediate_size: 11_008,
  num_hidden_layers: 32,
  num_attention_heads: 32,
  max_position_embeddings: 4096,
  eos_token_id: 100_257,
};

/** Reads config.json of FlexOlmo. Throws EngineError naming the field that is wrong or beyond what the forward pass does. */
function parseFlexOlmoConfig(json: Json): DecoderStackConfig {
  const settings = { ...DEFAULTS, ...json };
  const config: DecoderStackConfig = { ...parseLlamaConfig(settings), qkNorm: 'full' };
  return withExpertsOnly(config, settings, { count: 7, perRow: 5 }, json['norm_topk_prob'] === true);
}

/** FlexOlmo: OLMo 2 with experts in every layer. Shapes and names: MODEL.md. */
export const FLEX_OLMO = decoderStack({ parseConfig: parseFlexOlmoConfig, mlp: expertMlp('silu'), norms: NORMS });
