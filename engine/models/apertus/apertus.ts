import { EngineError } from '../../errors.ts';
import { describe, isObject } from '../../util/json.ts';
import type { Json } from '../../util/json.ts';
import { expectValue } from '../config-fields.ts';
import { decoderStack } from '../layers/decoder-stack.ts';
import type { StoredCurve } from '../layers/mlp.ts';
import type { DecoderStackConfig } from '../layers/stack-config.ts';
import { xieluMlp } from '../layers/xielu-mlp.ts';
import { parseLlamaConfig } from '../llama/config.ts';

/** Defaults of ApertusConfig (transformers, configuration_apertus.py). A file without scaling says so by null. */
const DEFAULTS = {
  vocab_size: 131_072,
  hidden_size: 4096,
  intermediate_size: 14_336,
  num_hidden_layers: 32,
  num_attention_heads: 32,
  max_position_embeddings: 65_536,
  rms_norm_eps: 1e-5,
  eos_token_id: 2,
};
const SCALING = { rope_type: 'llama3', factor: 8, low_freq_factor: 1, high_freq_factor: 4, original_max_position_embeddings: 8192 };

/** Reads config.json of Apertus. Throws EngineError naming the field that is wrong or beyond what the forward pass does. */
export function parseApertusConfig(json: Json): DecoderStackConfig {
  // Published files say these; transformers does not read them.
  expectValue(json, 'qk_norm', true);
  expectValue(json, 'post_norm', false);
  const scaling = (json['rope_parameters'] ?? undefined) === undefined ? { rope_scaling: SCALING } : {};
  const config = parseLlamaConfig({ ...DEFAULTS, ...scaling, ...json });
  return { ...config, qkNorm: true, curves: curvesOf(json, config.layers) };
}

/** The numbers of each layer's xIELU where the settings have them, which are those of GGUF files. */
function curvesOf({ xielu: lists }: Json, layers: number): readonly StoredCurve[] | undefined {
  if (lists === undefined) return undefined;
  const list = (name: keyof StoredCurve): readonly number[] => {
    const numbers: unknown = isObject(lists) ? lists[name] : undefined;
    if (Array.isArray(numbers) && numbers.length === layers && numbers.every(Number.isFinite)) return numbers;
    throw new EngineError('invalid_model', `config.json: xielu.${name} is ${describe(numbers)}, expected ${layers} numbers`);
  };
  const [alpha_p, alpha_n, beta, eps] = [list('alpha_p'), list('alpha_n'), list('beta'), list('eps')];
  return alpha_p.map((value, i) => ({ alpha_p: value, alpha_n: alpha_n[i]!, beta: beta[i]!, eps: eps[i]! }));
}

/** Apertus: Llama with norms of heads and an MLP of xIELU and no gate. Shapes and names: MODEL.md. */
export const APERTUS = decoderStack({
  parseConfig: parseApertusConfig,
  mlp: xieluMlp(),
  norms: { beforeAttention: 'attention_layernorm', beforeMlp: 'feedforward_layernorm' },
});
