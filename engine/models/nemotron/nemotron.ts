import type { Json } from '../../util/json.ts';
import { number } from '../config-fields.ts';
import { decoderStack } from '../layers/decoder-stack.ts';
import { plainMlp } from '../layers/mlp.ts';
import type { DecoderStackConfig } from '../layers/stack-config.ts';
import { parseLlamaConfig } from '../llama/config.ts';

/** Defaults of NemotronConfig (transformers, configuration_nemotron.py). */
const DEFAULTS = { max_position_embeddings: 4096, partial_rotary_factor: 0.5, tie_word_embeddings: false, eos_token_id: 3 };
const EPS = 1e-5;

/** Reads config.json of Nemotron and Minitron. Throws EngineError naming the field that is wrong or beyond what the forward pass does. */
function parseNemotronConfig(json: Json): DecoderStackConfig {
  const own = { rms_norm_eps: number(json, 'norm_eps', EPS) };
  return { ...parseLlamaConfig({ ...DEFAULTS, ...json, ...own }), layerNorm: { hasBias: true }, normOffset: 1 };
}

/** Nemotron and Minitron: layer norms with weights around zero, squared ReLU, partial rotary embeddings. Shapes and names: MODEL.md. */
export const NEMOTRON = decoderStack({ parseConfig: parseNemotronConfig, mlp: plainMlp('relu2') });
