import type { Json } from '../../util/json.ts';
import { expectValue, number, optionalObject } from '../config-fields.ts';
import type { DecoderDefinition } from '../decoder.ts';
import { gatheredCheckpoint } from '../gathered-checkpoint.ts';
import type { GatheredRows } from '../gathered-checkpoint.ts';
import { decoderStack } from '../layers/decoder-stack.ts';
import { PLAIN_ACTS, activationOf, plainMlp } from '../layers/mlp.ts';
import type { DecoderStackConfig } from '../layers/stack-config.ts';
import { parseLlamaConfig } from '../llama/config.ts';
import { withTensors, withUsualNames } from '../text-part.ts';
import type { WeightLoader } from '../weight-loader.ts';

/** Defaults of GPTNeoXConfig (transformers, configuration_gpt_neox.py). */
const DEFAULTS = { vocab_size: 50_432, hidden_size: 6144, num_hidden_layers: 44, num_attention_heads: 64, intermediate_size: 24_576, eos_token_id: 2 }; // prettier-ignore
const EPS = 1e-5;
const ROPE = { theta: 10_000, share: 0.25 };
const ACTIVATION = 'gelu';

/** Reads config.json of GPT-NeoX. Throws EngineError naming the field that is wrong or beyond what the forward pass does. */
function parseGptNeoXConfig(json: Json): DecoderStackConfig {
  const hasBias = json['attention_bias'] !== false;
  const own = { rms_norm_eps: number(json, 'layer_norm_eps', EPS), attention_bias: hasBias, num_key_value_heads: null };
  return {
    ...parseLlamaConfig({ ...DEFAULTS, ...json, ...own, ...rotation(json) }),
    layerNorm: { hasBias: true },
    isParallel: json['use_parallel_residual'] === false ? false : 'apart',
    mlpBias: true,
    activation: activationOf(json, 'hidden_act', ACTIVATION),
  };
}

/**
 * The rotary embedding under the names of other families, which this one ignores: they must say the same. `rope_scaling` stands in for
 * `rope_parameters`, not beside it.
 */
function rotation(json: Json): Json {
  const given = optionalObject(json, 'rope_scaling') ?? optionalObject(json, 'rope_parameters') ?? {};
  const rope_theta = number(given, 'rope_theta', number(json, 'rotary_emb_base', ROPE.theta));
  const partial_rotary_factor = number(given, 'partial_rotary_factor', number(json, 'rotary_pct', ROPE.share));
  expectValue(json, 'rope_theta', rope_theta);
  expectValue(json, 'partial_rotary_factor', partial_rotary_factor);
  return { rope_parameters: { ...given, rope_theta, partial_rotary_factor }, rope_scaling: undefined };
}

/** What checkpoints call the tensors, and what other families call them. */
const NAMES = [
  [/^gpt_neox\.embed_in\./, 'model.embed_tokens.'],
  [/^gpt_neox\.final_layer_norm\./, 'model.norm.'],
  [/^gpt_neox\./, 'model.'],
  [/^embed_out\./, 'lm_head.'],
  [/\.attention\.dense\./, '.self_attn.o_proj.'],
  [/\.attention\./, '.self_attn.'],
  [/\.dense_h_to_4h\./, '.up_proj.'],
  [/\.dense_4h_to_h\./, '.down_proj.'],
] as const;

/** Masks and rotary frequencies, which old checkpoints have and which follow from the config. */
const BUFFERS = /\.attention\.(bias|masked_bias|rotary_emb\.inv_freq)$/;

/** Queries, keys and values, which checkpoints have by head: a head's queries, its keys, its values. */
function projections({ checkpoint }: WeightLoader, { heads, headDim }: DecoderStackConfig): ReadonlyMap<string, GatheredRows> {
  const found = new Map<string, GatheredRows>();
  for (const source of checkpoint.names()) {
    const [, at, kind] = /^(.*\.attention)\.query_key_value\.(weight|bias)$/.exec(source) ?? [];
    if (at === undefined) continue;
    for (const [part, name] of ['q_proj', 'k_proj', 'v_proj'].entries()) {
      const first = (head: number): number => (3 * head + part) * headDim;
      const runs = Array.from({ length: heads }, (_, head) => ({ from: first(head), to: first(head) + headDim }));
      found.set(`${at}.${name}.${kind}`, { source, runs });
    }
  }
  return found;
}

const STACK = decoderStack({
  parseConfig: parseGptNeoXConfig,
  mlp: plainMlp(ACTIVATION),
  activationNames: PLAIN_ACTS,
});

/** Pythia, GPT-NeoX-20B and what was made of them: attention and MLP in parallel, each behind a layer norm of its own. Shapes and names: MODEL.md. */
export const GPT_NEOX: DecoderDefinition = {
  ...STACK,
  takes: (name) => !BUFFERS.test(name),
  load(loader, json, ...rest) {
    const taken = withTensors(loader, loader.checkpoint.names().filter((name) => !BUFFERS.test(name))); // prettier-ignore
    const gathered = gatheredCheckpoint(taken.checkpoint, projections(taken, parseGptNeoXConfig(json)));
    return STACK.load(withUsualNames(loader.over(gathered), NAMES), json, ...rest);
  },
};
