import type { Json } from '../../util/json.ts';
import { expectValue, integer, tiedByDefault } from '../config-fields.ts';
import type { DecoderDefinition } from '../decoder.ts';
import { decoderStack } from '../layers/decoder-stack.ts';
import { PLAIN_ACTS, activationOf, plainMlp } from '../layers/mlp.ts';
import type { DecoderStackConfig } from '../layers/stack-config.ts';
import { positionsStorage } from '../layers/vocabulary.ts';
import { parseLlamaConfig } from '../llama/config.ts';
import { withUsualNames } from '../text-part.ts';

/** Defaults of OPTConfig (transformers, configuration_opt.py). */
const DEFAULTS = {
  vocab_size: 50_272,
  hidden_size: 768,
  num_hidden_layers: 12,
  num_attention_heads: 12,
  max_position_embeddings: 2048,
  eos_token_id: 2,
};
const COLUMNS = 3072;
const EPS = 1e-5;
const ACTIVATION = 'relu';
const FIELD = 'activation_function';

/** Rows of the table of positions before that of the first position. */
const OFFSET = 2;

/** Reads config.json of OPT. Throws EngineError naming the field that is wrong or beyond what the forward pass does. */
function parseOptConfig(json: Json): DecoderStackConfig {
  // OPT-350M norms behind the halves, and has embeddings of fewer channels than its layers.
  expectValue(json, 'do_layer_norm_before', true);
  expectValue(json, '_remove_final_layer_norm', false);
  expectValue(json, 'layer_norm_elementwise_affine', true);
  const hasBias = json['enable_bias'] !== false;
  const own = {
    rms_norm_eps: EPS,
    intermediate_size: integer(json, 'ffn_dim', COLUMNS),
    num_key_value_heads: null,
    head_dim: null,
    attention_bias: hasBias,
  };
  const config = parseLlamaConfig({ ...DEFAULTS, ...json, ...own });
  expectValue(json, 'word_embed_proj_dim', config.hidden);
  return {
    ...config,
    rope: { ...config.rope, scaling: { kind: 'none' } },
    positions: { count: config.maxPositions, offset: OFFSET },
    layerNorm: { hasBias: true },
    mlpBias: hasBias,
    tied: tiedByDefault(json),
    activation: activationOf(json, FIELD, ACTIVATION),
  };
}

/** What checkpoints call the tensors, some without the first part, and what other families call them. */
const NAMES = [
  [/^(?:model\.)?decoder\./, 'model.'],
  [/^model\.final_layer_norm\./, 'model.norm.'],
  [/\.self_attn_layer_norm\./, '.input_layernorm.'],
  [/\.final_layer_norm\./, '.post_attention_layernorm.'],
  [/\.self_attn\.out_proj\./, '.self_attn.o_proj.'],
  [/\.fc1\./, '.mlp.up_proj.'],
  [/\.fc2\./, '.mlp.down_proj.'],
] as const;

const STACK = decoderStack({
  parseConfig: parseOptConfig,
  mlp: plainMlp(ACTIVATION),
  activationField: FIELD,
  activationNames: PLAIN_ACTS,
});

/** OPT: learned positions, layer norms, biases everywhere, ReLU, a tied head. Shapes and names: MODEL.md. */
export const OPT: DecoderDefinition = {
  ...STACK,
  storage: positionsStorage,
  load: (loader, ...rest) => STACK.load(withUsualNames(loader, NAMES), ...rest),
};
