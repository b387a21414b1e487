import type { Json } from '../../util/json.ts';
import { expectValue, integer, number, tiedByDefault } from '../config-fields.ts';
import type { DecoderDefinition } from '../decoder.ts';
import { decoderStack } from '../layers/decoder-stack.ts';
import { PLAIN_ACTS, activationOf, plainMlp } from '../layers/mlp.ts';
import type { DecoderStackConfig } from '../layers/stack-config.ts';
import { positionsStorage } from '../layers/vocabulary.ts';
import { parseLlamaConfig } from '../llama/config.ts';
import { withTensors, withUsualNames } from '../text-part.ts';
import { transposedCheckpoint } from '../transposed-checkpoint.ts';

/** Defaults of GPT2Config (transformers, configuration_gpt2.py). */
const DEFAULTS = { vocab_size: 50_257, n_embd: 768, n_layer: 12, n_head: 12, n_positions: 1024, eos_token_id: 50_256 };
const EPS = 1e-5;
const ACTIVATION = 'gelu_new';
const FIELD = 'activation_function';

/** Names of sizes that stand for another family's too, as in transformers; the family's own goes first. */
const SIZES = [
  ['n_embd', 'hidden_size'],
  ['n_layer', 'num_hidden_layers'],
  ['n_head', 'num_attention_heads'],
  ['n_positions', 'max_position_embeddings'],
] as const;

/** Reads config.json of GPT-2. Throws EngineError naming the field that is wrong or beyond what the forward pass does. */
function parseGpt2Config(json: Json): DecoderStackConfig {
  expectValue(json, 'scale_attn_weights', true);
  expectValue(json, 'scale_attn_by_inverse_layer_idx', false);
  expectValue(json, 'add_cross_attention', false);
  const sizes = Object.fromEntries(SIZES.map(([own, usual]) => [usual, integer(json, own, integer(json, usual, DEFAULTS[own]))]));
  const own = {
    rms_norm_eps: number(json, 'layer_norm_epsilon', EPS),
    intermediate_size: integer(json, 'n_inner', 4 * sizes['hidden_size']!),
    num_key_value_heads: null,
    head_dim: null,
    attention_bias: true,
  };
  const config = parseLlamaConfig({ ...DEFAULTS, ...json, ...sizes, ...own });
  return {
    ...config,
    rope: { ...config.rope, scaling: { kind: 'none' } },
    positions: { count: config.maxPositions, offset: 0 },
    qkvFused: true,
    layerNorm: { hasBias: true },
    mlpBias: true,
    tied: tiedByDefault(json),
    activation: activationOf(json, FIELD, ACTIVATION),
  };
}

/** What checkpoints call the tensors, some without the first part, and what other families call them. */
const NAMES = [
  [/^transformer\./, ''],
  [/^wte\./, 'model.embed_tokens.'],
  [/^wpe\./, 'model.embed_positions.'],
  [/^ln_f\./, 'model.norm.'],
  [/^h\./, 'model.layers.'],
  [/\.ln_1\./, '.input_layernorm.'],
  [/\.ln_2\./, '.post_attention_layernorm.'],
  [/\.attn\.c_attn\./, '.self_attn.qkv_proj.'],
  [/\.attn\.c_proj\./, '.self_attn.o_proj.'],
  [/\.mlp\.c_fc\./, '.mlp.up_proj.'],
  [/\.mlp\.c_proj\./, '.mlp.down_proj.'],
] as const;

/** Weights of products, which checkpoints have as [in, out] (transformers' Conv1D). */
const TRANSPOSED = /(?:^|\.)h\.\d+\.(?:attn|mlp)\.c_\w+\.weight$/;
/** Masks, which old checkpoints have. */
const BUFFERS = /\.attn\.(bias|masked_bias)$/;

const STACK = decoderStack({
  parseConfig: parseGpt2Config,
  mlp: plainMlp(ACTIVATION),
  activationField: FIELD,
  activationNames: PLAIN_ACTS,
});

/** GPT-2 and DistilGPT-2: learned positions, layer norms, biases everywhere, a tied head. Shapes and names: MODEL.md. */
export const GPT2: DecoderDefinition = {
  ...STACK,
  storage: positionsStorage,
  takes: (name) => !BUFFERS.test(name),
  load(loader, ...rest) {
    const taken = withTensors(loader, loader.checkpoint.names().filter((name) => !BUFFERS.test(name))); // prettier-ignore
    const turned = transposedCheckpoint(taken.checkpoint, (name) => TRANSPOSED.test(name));
    return STACK.load(withUsualNames(loader.over(turned), NAMES), ...rest);
  },
};
