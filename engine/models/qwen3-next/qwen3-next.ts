import type { Json } from '../../util/json.ts';
import type { Range } from '../../util/math.ts';
import type { Checkpoint } from '../../weights/checkpoint.ts';
import { layerCount } from '../config-fields.ts';
import type { DecoderDefinition, StackDefinition } from '../decoder.ts';
import { columnsOf, expertSizes, sparseLayers, withSharedExpert } from '../experts-config.ts';
import { gatheredCheckpoint } from '../gathered-checkpoint.ts';
import type { GatheredRows } from '../gathered-checkpoint.ts';
import { decoderStack } from '../layers/decoder-stack.ts';
import { expertMlp } from '../layers/experts.ts';
import type { DecoderStackConfig } from '../layers/stack-config.ts';
import { deltaNetConfig, parseHybridConfig } from '../qwen3-5/config.ts';
import { textPart } from '../text-part.ts';

/** Defaults of Qwen3NextConfig (transformers, configuration_qwen3_next.py). */
const DEFAULTS = {
  vocab_size: 151_936,
  hidden_size: 2048,
  intermediate_size: 5632,
  num_hidden_layers: 48,
  num_attention_heads: 16,
  num_key_value_heads: 2,
  head_dim: 256,
  max_position_embeddings: 32_768,
  rms_norm_eps: 1e-6,
  partial_rotary_factor: 0.25,
  tie_word_embeddings: false,
};
const EXPERTS = { count: 512, perRow: 10, intermediate: 512 };
/** Columns of the shared expert. */
const SHARED = 512;

/** Reads config.json of Qwen3-Next. Throws EngineError naming the field that is wrong or beyond what the forward pass does. */
function parseQwen3NextConfig(json: Json): DecoderStackConfig {
  const settings: Json = { ...DEFAULTS, ...json };
  const experts = {
    ...expertSizes(settings, EXPERTS),
    shares: { normalised: json['norm_topk_prob'] !== false },
    hasShared: true,
    layers: sparseLayers(settings, layerCount(settings)),
  };
  return withSharedExpert(parseHybridConfig(settings), experts, columnsOf(settings, 'shared_expert_intermediate_size', SHARED));
}

/**
 * The projections of the delta-nets, which checkpoints have by key head: its queries, its keys, the values of the heads that share it and
 * their gates in `in_proj_qkvz`, and these heads' rates and decays in `in_proj_ba`. Newer GGUF files have only the latter so.
 */
function projections(checkpoint: Checkpoint, json: Json): ReadonlyMap<string, GatheredRows> {
  const { keyHeads, heads, keyDim, valueDim } = deltaNetConfig({ ...DEFAULTS, ...json }, 0);
  const shared = heads / keyHeads;
  const values = shared * valueDim;
  /** Rows [from, to) of each key head, of `all`. */
  const ofHeads = (all: number, from: number, to: number): Range[] =>
    Array.from({ length: keyHeads }, (_, head) => ({ from: head * all + from, to: head * all + to }));
  const rows = 2 * (keyDim + values);
  const parts: Readonly<Record<string, readonly (readonly [name: string, runs: readonly Range[]])[]>> = {
    in_proj_qkvz: [
      ['in_proj_qkv', [[0, keyDim], [keyDim, 2 * keyDim], [2 * keyDim, 2 * keyDim + values]].flatMap(([from, to]) => ofHeads(rows, from!, to!))],
      ['in_proj_z', ofHeads(rows, 2 * keyDim + values, rows)],
    ],
    in_proj_ba: [
      ['in_proj_b', ofHeads(2 * shared, 0, shared)],
      ['in_proj_a', ofHeads(2 * shared, shared, 2 * shared)],
    ],
  }; // prettier-ignore
  const found = new Map<string, GatheredRows>();
  for (const source of checkpoint.names()) {
    const [, at, kind] = /^(.*\.linear_attn)\.(in_proj_qkvz|in_proj_ba)\.weight$/.exec(source) ?? [];
    for (const [name, runs] of parts[kind ?? ''] ?? []) found.set(`${at}.${name}.weight`, { source, runs });
  }
  return found;
}

const STACK = decoderStack({ parseConfig: parseQwen3NextConfig, mlp: expertMlp('silu') });
const GATHERED: StackDefinition = {
  ...STACK,
  load: (loader, json, ...rest) =>
    STACK.load(loader.over(gatheredCheckpoint(loader.checkpoint, projections(loader.checkpoint, json))), json, ...rest),
};

/** Qwen3-Next: three gated delta-net layers for each gated attention layer, experts beside a shared one. Shapes and names: MODEL.md. */
export const QWEN3_NEXT: DecoderDefinition = textPart(GATHERED);
