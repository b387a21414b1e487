import { EngineError } from '../../errors.ts';
import type { Json } from '../../util/json.ts';
import { expectValue, integer, layerCount, layerTypes, number, softCap, tiedByDefault, tokenIds } from '../config-fields.ts';
import type { DecoderStackConfig } from '../layers/stack-config.ts';
import { parseRope, readRopes } from '../rope-config.ts';

/**
 * Published config.json files leave out what their class has as its default (transformers, configuration_gemma2.py and
 * configuration_gemma3.py).
 */
interface Defaults {
  readonly vocabulary: number;
  readonly positions: number;
  /** One in this many layers has full attention. */
  readonly pattern: number;
  readonly scoreSoftCap: number | undefined;
  readonly logitSoftCap: number | undefined;
  readonly theta: number;
  /** Rotary base of the sliding-window layers. */
  readonly localTheta: number;
}

const GEMMA2: Defaults = {
  vocabulary: 256_000,
  positions: 8192,
  pattern: 2,
  scoreSoftCap: 50,
  logitSoftCap: 30,
  theta: 1e4,
  localTheta: 1e4,
};
const GEMMA3: Defaults = { vocabulary: 262_208, positions: 131_072, pattern: 6, scoreSoftCap: undefined, logitSoftCap: undefined, theta: 1e6, localTheta: 1e4 }; // prettier-ignore

/**
 * Reads config.json of Gemma 2 and of the text part of Gemma 3. Throws EngineError naming the field that is wrong or beyond what the
 * forward pass does.
 */
export function parseGemmaConfig(json: Json): DecoderStackConfig {
  const isGemma2 = json['model_type'] === 'gemma2';
  const defaults = isGemma2 ? GEMMA2 : GEMMA3;
  const heads = integer(json, 'num_attention_heads', 8);
  const kvHeads = integer(json, 'num_key_value_heads', 4);
  const headDim = integer(json, 'head_dim', 256);
  const hidden = integer(json, 'hidden_size', 2304);
  const intermediate = integer(json, 'intermediate_size', 9216);
  if (heads % kvHeads !== 0) throw new EngineError('invalid_model', `config.json: ${heads} heads over ${kvHeads} key/value heads`);
  if (headDim % 8 !== 0 || hidden % 4 !== 0 || intermediate % 4 !== 0) {
    throw new EngineError('unsupported', `config.json: head dim ${headDim} (multiple of 8), hidden ${hidden}, intermediate ${intermediate} (multiples of 4)`); // prettier-ignore
  }
  expectValue(json, 'attention_bias', false);
  if (json['use_bidirectional_attention']) expectValue(json, 'use_bidirectional_attention', false);
  const layers = layerCount(json, 26);
  const localTheta = number(json, 'rope_local_base_freq', defaults.localTheta);
  // Gemma 2 has one rotary embedding for both kinds of layers.
  const ropes = isGemma2 ? undefined : readRopes({ rope_theta: defaults.theta, ...json }, headDim, localTheta);
  const global = ropes?.full ?? parseRope(json, headDim, { theta: defaults.theta });
  const local = ropes?.sliding ?? global;
  const pattern = integer(json, 'sliding_window_pattern', defaults.pattern);
  const types = layerTypes(json, layers, ['full_attention', 'sliding_attention']);
  const slides = (layer: number): boolean => (types ? types[layer] === 'sliding_attention' : (layer + 1) % pattern !== 0);
  const window = integer(json, 'sliding_window', 4096);
  return {
    layers,
    heads,
    kvHeads,
    headDim,
    hidden,
    intermediate,
    vocabulary: integer(json, 'vocab_size', defaults.vocabulary),
    maxPositions: integer(json, 'max_position_embeddings', defaults.positions),
    eps: number(json, 'rms_norm_eps', 1e-6),
    rope: global,
    kinds: Array.from({ length: layers }, (_, layer) => (slides(layer) ? { rope: local, window } : { rope: global })),
    qkvBias: false,
    outputBias: false,
    qkNorm: !isGemma2,
    // Norm weights are stored minus 1.
    normOffset: 1,
    scores: {
      scale: number(json, 'query_pre_attn_scalar', 256) ** -0.5,
      softCap: softCap(json, 'attn_logit_softcapping', defaults.scoreSoftCap),
    },
    embeddingScale: Math.fround(Math.sqrt(hidden)),
    logitSoftCap: softCap(json, 'final_logit_softcapping', defaults.logitSoftCap),
    tied: tiedByDefault(json),
    eosTokenIds: tokenIds(json['eos_token_id']),
  };
}
