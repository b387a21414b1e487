import type { Json } from '../../util/json.ts';
import { expectValue, number } from '../config-fields.ts';
import type { DecoderDefinition } from '../decoder.ts';
import { decoderStack } from '../layers/decoder-stack.ts';
import { PLAIN_ACTS, activationOf, plainMlp } from '../layers/mlp.ts';
import type { DecoderStackConfig } from '../layers/stack-config.ts';
import { parseLlamaConfig } from '../llama/config.ts';
import { withUsualNames } from '../text-part.ts';

/** Defaults of PhiConfig (transformers, configuration_phi.py). */
const DEFAULTS = {
  vocab_size: 51_200,
  hidden_size: 2048,
  intermediate_size: 8192,
  num_hidden_layers: 24,
  num_attention_heads: 32,
  partial_rotary_factor: 0.5,
  tie_word_embeddings: false,
  eos_token_id: 2,
};
const EPS = 1e-5;
const ACTIVATION = 'gelu_new';

/** Reads config.json of Phi-1, 1.5 and 2. Throws EngineError naming the field that is wrong or beyond what the forward pass does. */
function parsePhiConfig(json: Json): DecoderStackConfig {
  // A layer norm for every head.
  expectValue(json, 'qk_layernorm', false);
  const own = { rms_norm_eps: number(json, 'layer_norm_eps', EPS), attention_bias: true };
  return {
    ...parseLlamaConfig({ ...DEFAULTS, ...json, ...own }),
    layerNorm: { hasBias: true },
    isParallel: true,
    mlpBias: true,
    headBias: true,
    activation: activationOf(json, 'hidden_act', ACTIVATION),
  };
}

/** What checkpoints call the tensors, and what other families call them. */
const NAMES = [
  [/^model\.final_layernorm\./, 'model.norm.'],
  [/\.self_attn\.dense\./, '.self_attn.o_proj.'],
] as const;

const STACK = decoderStack({
  parseConfig: parsePhiConfig,
  mlp: plainMlp(ACTIVATION, { up: 'fc1', down: 'fc2' }),
  activationNames: PLAIN_ACTS,
});

/** Phi-1, 1.5 and 2: attention and MLP in parallel behind one layer norm, biases everywhere. Shapes and names: MODEL.md. */
export const PHI: DecoderDefinition = {
  ...STACK,
  load: (loader, ...rest) => STACK.load(withUsualNames(loader, NAMES), ...rest),
};
