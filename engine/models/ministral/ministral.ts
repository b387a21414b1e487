import { EngineError } from '../../errors.ts';
import type { Json } from '../../util/json.ts';
import { describe } from '../../util/json.ts';
import { integer, number, optionalObject } from '../config-fields.ts';
import type { DecoderDefinition } from '../decoder.ts';
import { decoderStack } from '../layers/decoder-stack.ts';
import type { DecoderStackConfig } from '../layers/stack-config.ts';
import { gatedMlp } from '../layers/mlp.ts';
import { parseLlamaConfig } from '../llama/config.ts';
import { textPart } from '../text-part.ts';

/** Defaults of Ministral3Config (transformers, configuration_ministral3.py). */
const DEFAULTS = {
  rms_norm_eps: 1e-5,
  max_position_embeddings: 262_144,
  rope_parameters: {
    rope_type: 'yarn',
    rope_theta: 1e6,
    factor: 16,
    original_max_position_embeddings: 16_384,
    mscale: 1,
    mscale_all_dim: 1,
    llama_4_scaling_beta: 0.1,
  },
};

/** Reads config.json of the text part. Throws EngineError naming the field that is wrong or beyond what the forward pass does. */
function parseMinistralConfig(json: Json): DecoderStackConfig {
  const type = json['model_type'];
  // Mistral Small 3.1 and 3.2 have the same vision part beside Mistral's text part.
  if (type === 'mistral') return parseLlamaConfig(json);
  if (type !== 'ministral3') {
    throw new EngineError('unsupported', `config.json: the text part's model_type is ${describe(type)}; known are ministral3 and mistral`);
  }
  const settings: Json = { ...DEFAULTS, ...json };
  const parameters = optionalObject(settings, 'rope_parameters') ?? {};
  const rate = number(parameters, 'llama_4_scaling_beta', 0);
  const span = rate === 0 ? 1 : integer(parameters, 'original_max_position_embeddings');
  return { ...parseLlamaConfig(settings), ...(rate !== 0 && { scores: { growth: { rate, span } } }) };
}

const TEXT = decoderStack({ parseConfig: parseMinistralConfig, mlp: gatedMlp('silu') });

/** Ministral 3, and multimodal Mistral Small 3: the text part. Shapes and names: MODEL.md. */
export const MINISTRAL: DecoderDefinition = textPart(TEXT);
