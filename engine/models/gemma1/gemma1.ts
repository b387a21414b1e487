import type { Json } from '../../util/json.ts';
import { expectValue, tiedByDefault } from '../config-fields.ts';
import { decoderStack } from '../layers/decoder-stack.ts';
import type { DecoderStackConfig } from '../layers/stack-config.ts';
import { gatedMlp } from '../layers/mlp.ts';
import { parseLlamaConfig } from '../llama/config.ts';

/** Defaults of GemmaConfig (transformers, configuration_gemma.py). */
const DEFAULTS = {
  vocab_size: 256_000,
  hidden_size: 3072,
  intermediate_size: 24_576,
  num_hidden_layers: 28,
  num_attention_heads: 16,
  num_key_value_heads: 16,
  head_dim: 256,
  max_position_embeddings: 8192,
};

/** Reads config.json of Gemma 1. Throws EngineError naming the field that is wrong or beyond what the forward pass does. */
function parseGemma1Config(json: Json): DecoderStackConfig {
  if (json['use_bidirectional_attention']) expectValue(json, 'use_bidirectional_attention', false);
  const config = parseLlamaConfig({ ...DEFAULTS, ...json });
  // Norm weights are stored minus 1.
  return { ...config, normOffset: 1, embeddingScale: Math.fround(Math.sqrt(config.hidden)), tied: tiedByDefault(json) };
}

/** Gemma 1 and CodeGemma: Llama with norms around 1, scaled embeddings and GELU. Shapes and names: MODEL.md. */
export const GEMMA1 = decoderStack({
  parseConfig: parseGemma1Config,
  mlp: gatedMlp('gelu_pytorch_tanh'),
  // The first files say "gelu", and mean this one (transformers, GemmaConfig).
  activationNames: ['gelu'],
});
