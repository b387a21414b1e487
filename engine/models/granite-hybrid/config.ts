import { EngineError } from '../../errors.ts';
import type { Json } from '../../util/json.ts';
import { describe } from '../../util/json.ts';
import { integer, layerCount, layerTypes, number, recurrentKinds } from '../config-fields.ts';
import { expertSizes } from '../experts-config.ts';
import { mamba2 } from '../layers/mamba2.ts';
import type { Mamba2Config } from '../layers/mamba2.ts';
import type { ExpertsConfig } from '../layers/mlp.ts';
import type { DecoderStackConfig } from '../layers/stack-config.ts';
import { parseLlamaConfig } from '../llama/config.ts';
import { bambaConfig } from '../mamba2-config.ts';

/** Defaults of GraniteMoeHybridConfig (transformers, configuration_granitemoehybrid.py). */
const DEFAULTS = {
  vocab_size: 32_000,
  hidden_size: 4096,
  intermediate_size: 11_008,
  num_hidden_layers: 32,
  num_attention_heads: 32,
  shared_intermediate_size: 1024,
};
const EXPERTS = { count: 8, perRow: 2 };
/** Layer types, as published and as transformers 5 writes them. */
const KNOWN = ['mamba', 'attention', 'linear_attention', 'full_attention'] as const;

/** Number of experts of each layer; 0 = the layers have the shared MLP alone. */
export function expertCount(json: Json): number {
  const count = number(json, 'num_local_experts', EXPERTS.count);
  return count === 0 ? 0 : integer(json, 'num_local_experts', EXPERTS.count);
}

/**
 * Reads config.json of Granite 4. Throws EngineError naming the field that is wrong or beyond what the forward pass does. The shared MLP is
 * the dense one; `intermediate_size` is an expert's.
 */
export function parseGraniteHybridConfig(json: Json): DecoderStackConfig {
  const settings = { ...DEFAULTS, ...json };
  // Layer types are read below, not as Llama's.
  const config = parseLlamaConfig({ ...settings, layer_types: undefined, intermediate_size: settings.shared_intermediate_size });
  const { layers, hidden } = config;
  const rope = hasRope(json) ? config.rope : { ...config.rope, scaling: { kind: 'none' as const } };
  const types = layerTypes({ layer_types: json['layer_types'] ?? json['layers_block_type'] }, layers, KNOWN);
  const isRecurrent = (layer: number): boolean => !types || types[layer] === 'mamba' || types[layer] === 'linear_attention';
  const kinds = recurrentKinds(layers, rope, isRecurrent);
  return {
    ...config,
    rope,
    kinds,
    recurrent: kinds.some((kind) => kind.isRecurrent) ? mamba2(mambaConfig(settings, hidden)) : undefined,
    experts: expertCount(json) > 0 ? graniteExperts(settings) : undefined,
  };
}

/** Whether queries and keys are rotated; published files say "nope" where they are not, transformers' default is null. */
function hasRope({ position_embedding_type: type = null }: Json): boolean {
  if (type === 'rope') return true;
  if (type === null || type === 'nope') return false;
  throw new EngineError('unsupported', `config.json: position_embedding_type is ${describe(type)}, expected "rope", "nope" or null`);
}

/** Experts in every layer beside the shared MLP. Shares are a softmax over the logits of the chosen experts alone. */
function graniteExperts(json: Json): ExpertsConfig {
  const sizes = expertSizes({ ...json, num_experts: expertCount(json) }, { ...EXPERTS, intermediate: DEFAULTS.intermediate_size }, 'intermediate_size'); // prettier-ignore
  return { ...sizes, shares: { normalised: true }, hasShared: 'ungated', layers: new Array<boolean>(layerCount(json)).fill(true) };
}

function mambaConfig(json: Json, hidden: number): Mamba2Config {
  const columns = integer(json, 'mamba_expand', 2) * hidden;
  // The residual stream's eps is another (multipliers of llama/config.ts).
  const eps = number(json, 'rms_norm_eps', 1e-6);
  return { hidden, ...bambaConfig(json, columns, 'mamba_expand times hidden_size'), eps };
}
