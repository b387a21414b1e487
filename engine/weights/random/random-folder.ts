/** Models without files: a published shape with random weights, to measure a machine before anything is downloaded. */
import { EngineError } from '../../errors.ts';
import type { Json } from '../../util/json.ts';
import { MODEL_WEIGHTS } from '../model-folder.ts';
import type { ModelFormat, ModelPlace } from '../model-format.ts';
import { virtualFolder } from '../virtual-folder.ts';
import { RANDOM_TYPES, RandomCheckpoint } from './random-checkpoint.ts';

/** A decoder's sizes, by their names in config.json. */
interface Shape {
  readonly hidden_size: number;
  readonly intermediate_size: number;
  readonly num_hidden_layers: number;
  readonly num_attention_heads: number;
  readonly num_key_value_heads: number;
  readonly head_dim: number;
  readonly vocab_size: number;
  readonly max_position_embeddings: number;
  readonly rope_theta: number;
  /** The head is the embedding table. */
  readonly tie_word_embeddings: boolean;
}

/** Shapes by name: a tiny one to try the command with, Qwen2.5 0.5B without biases, Llama 3.2 1B, Llama 3.1 8B. */
export const RANDOM_SHAPES: Readonly<Record<string, Shape>> = {
  'llama-tiny': {
    hidden_size: 256, intermediate_size: 512, num_hidden_layers: 2, num_attention_heads: 4, num_key_value_heads: 2, head_dim: 64,
    vocab_size: 1024, max_position_embeddings: 2048, rope_theta: 1e4, tie_word_embeddings: false,
  },
  'llama-0.5b': {
    hidden_size: 896, intermediate_size: 4864, num_hidden_layers: 24, num_attention_heads: 14, num_key_value_heads: 2, head_dim: 64,
    vocab_size: 151_936, max_position_embeddings: 32_768, rope_theta: 1e6, tie_word_embeddings: true,
  },
  'llama-1b': {
    hidden_size: 2048, intermediate_size: 8192, num_hidden_layers: 16, num_attention_heads: 32, num_key_value_heads: 8, head_dim: 64,
    vocab_size: 128_256, max_position_embeddings: 131_072, rope_theta: 5e5, tie_word_embeddings: true,
  },
  'llama-8b': {
    hidden_size: 4096, intermediate_size: 14_336, num_hidden_layers: 32, num_attention_heads: 32, num_key_value_heads: 8, head_dim: 128,
    vocab_size: 128_256, max_position_embeddings: 131_072, rope_theta: 5e5, tie_word_embeddings: false,
  },
}; // prettier-ignore

/** A random model. */
export interface RandomModel {
  /** A name of RANDOM_SHAPES. */
  readonly shape: string;
  /** A name of RANDOM_TYPES. */
  readonly type: string;
  /** Number of layers; fewer than the shape has, where memory is short. */
  readonly layers?: number | undefined;
  readonly seed: number;
}

/** The path by which a random model is opened. */
export function randomPath({ shape, type, layers, seed }: RandomModel): string {
  return `random:${shape}-${type}${layers === undefined ? '' : `-${layers}layers`}-seed${seed}`;
}

const PATH = /^random:(.+?)-([a-z\d_]+)(?:-(\d+)layers)?-seed(\d+)$/;

/** The format of paths that randomPath makes. */
export const RANDOM: ModelFormat = {
  recognises: ({ path }) => path.startsWith('random:'),
  open: async (place: ModelPlace) => {
    const [, name = '', typeName = '', layers, seed] = PATH.exec(place.path) ?? [];
    const [shape, type] = [RANDOM_SHAPES[name], RANDOM_TYPES.get(typeName)];
    if (!shape || !type) throw new EngineError('invalid_model', `${place.path}: no such shape and type of random weights`);
    const config = { ...shape, ...(layers !== undefined && { num_hidden_layers: Number(layers) }) };
    const open = () => Promise.resolve(new RandomCheckpoint(tensorsOf(config), type, Number(seed)));
    return virtualFolder(
      { ...place, id: place.path.slice('random:'.length) },
      {
        format: `random ${type}`,
        json: {
          'config.json': () => ({ ...ALL, ...config }),
          'generation_config.json': () => ({}),
          'tokenizer.json': () => tokenizerOf(config.vocab_size),
          'tokenizer_config.json': () => ({ tokenizer_class: 'PreTrainedTokenizerFast' }),
        },
        weights: { [MODEL_WEIGHTS]: { path: place.path, open } },
      },
    );
  },
};

const ALL: Json = {
  architectures: ['LlamaForCausalLM'], model_type: 'llama', rms_norm_eps: 1e-5, hidden_act: 'silu', bos_token_id: null, eos_token_id: null,
}; // prettier-ignore

function tensorsOf(shape: Shape): Readonly<Record<string, readonly number[]>> {
  const { hidden_size: hidden, intermediate_size: intermediate, head_dim: headDim, vocab_size: vocabulary } = shape;
  const [queries, keys] = [shape.num_attention_heads * headDim, shape.num_key_value_heads * headDim];
  const tensors: Record<string, readonly number[]> = { 'model.embed_tokens.weight': [vocabulary, hidden], 'model.norm.weight': [hidden] };
  if (!shape.tie_word_embeddings) tensors['lm_head.weight'] = [vocabulary, hidden];
  for (let i = 0; i < shape.num_hidden_layers; i++) {
    const layer: Readonly<Record<string, readonly number[]>> = {
      input_layernorm: [hidden],
      'self_attn.q_proj': [queries, hidden],
      'self_attn.k_proj': [keys, hidden],
      'self_attn.v_proj': [keys, hidden],
      'self_attn.o_proj': [hidden, queries],
      post_attention_layernorm: [hidden],
      'mlp.gate_proj': [intermediate, hidden],
      'mlp.up_proj': [intermediate, hidden],
      'mlp.down_proj': [hidden, intermediate],
    };
    for (const [name, sizes] of Object.entries(layer)) tensors[`model.layers.${i}.${name}.weight`] = sizes;
  }
  return tensors;
}

/** The tokenizer: token i is the word `i`, so that generated text lists its tokens. */
function tokenizerOf(vocabulary: number): Json {
  const vocab = Object.fromEntries(Array.from({ length: vocabulary }, (_, id) => [String(id), id]));
  const model = { type: 'WordLevel', vocab, unk_token: '0' };
  return { version: '1.0', added_tokens: [], normalizer: null, pre_tokenizer: { type: 'WhitespaceSplit' }, post_processor: null, decoder: null, model }; // prettier-ignore
}
