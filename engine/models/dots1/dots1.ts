import type { Json } from '../../util/json.ts';
import { expectValue, integer } from '../config-fields.ts';
import type { DecoderDefinition } from '../decoder.ts';
import { sigmoidExperts, withSharedExpert } from '../experts-config.ts';
import { NAMES } from '../glm4-moe/glm4-moe.ts';
import { decoderStack } from '../layers/decoder-stack.ts';
import { expertMlp } from '../layers/experts.ts';
import type { DecoderStackConfig } from '../layers/stack-config.ts';
import { parseLlamaConfig } from '../llama/config.ts';
import { withUsualNames } from '../text-part.ts';

/** Defaults of Dots1Config that parseLlamaConfig has no others for (transformers, configuration_dots1.py). */
const DEFAULTS = {
  vocab_size: 152_064,
  hidden_size: 4608,
  intermediate_size: 10_944,
  num_hidden_layers: 62,
  num_attention_heads: 32,
  num_key_value_heads: 32,
  first_k_dense_replace: 0,
  norm_topk_prob: false,
};

/** Reads config.json of dots.llm1. Throws EngineError naming the field that is wrong or beyond what the forward pass does. */
function parseDots1Config(json: Json): DecoderStackConfig {
  const settings: Json = { ...DEFAULTS, ...json };
  const config = parseLlamaConfig(settings);
  // Published files name the way in which experts are chosen.
  const { scoring_func } = settings;
  expectValue({ scoring_func: scoring_func === 'noaux_tc' ? 'sigmoid' : scoring_func }, 'scoring_func', 'sigmoid');
  const sizes = { count: integer(settings, 'n_routed_experts'), perRow: integer(settings, 'num_experts_per_tok'), intermediate: 1408 };
  const experts = sigmoidExperts(settings, config.layers, sizes);
  return withSharedExpert(config, experts, experts.intermediate * integer(settings, 'n_shared_experts'));
}

const STACK = decoderStack({ parseConfig: parseDots1Config, mlp: expertMlp('silu') });

/** dots.llm1: Qwen3's attention, and DeepSeek-V3's experts behind the first layers. Shapes and names: MODEL.md. */
export const DOTS1: DecoderDefinition = { ...STACK, load: (loader, ...rest) => STACK.load(withUsualNames(loader, NAMES), ...rest) };
