/** Checkpoints that mean nothing: random weights of any shape, and a tokenizer whose tokens are spelled by their ids. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createRng } from '../../engine/util/rng.ts';
import { safetensorsFile } from './safetensors-file.ts';
import type { Tensors } from './safetensors-file.ts';

export interface RandomShape {
  readonly hidden: number;
  readonly intermediate: number;
  readonly layers: number;
  readonly heads: number;
  readonly kvHeads: number;
  readonly headDim: number;
  readonly vocabulary: number;
  readonly maxPositions: number;
}

/** Writes a Llama-shaped checkpoint with a tied head and a number tokenizer into a folder. */
export function writeRandomCheckpoint(folder: string, shape: RandomShape, seed = 1): void {
  mkdirSync(folder, { recursive: true });
  const config = {
    architectures: ['LlamaForCausalLM'], model_type: 'llama', hidden_size: shape.hidden, intermediate_size: shape.intermediate,
    num_hidden_layers: shape.layers, num_attention_heads: shape.heads, num_key_value_heads: shape.kvHeads, head_dim: shape.headDim,
    vocab_size: shape.vocabulary, max_position_embeddings: shape.maxPositions, rms_norm_eps: 1e-5, rope_theta: 10000,
    hidden_act: 'silu', tie_word_embeddings: true, bos_token_id: null, eos_token_id: null,
  }; // prettier-ignore
  writeFileSync(join(folder, 'config.json'), JSON.stringify(config));
  writeFileSync(join(folder, 'model.safetensors'), safetensorsFile(randomTensors(shape, seed)));
  writeNumberTokenizer(folder, shape.vocabulary);
}

/** Writes a tokenizer whose token i is the word `i`, for checkpoints without one: an answer's text is then the list of its tokens. */
export function writeNumberTokenizer(folder: string, vocabulary: number): void {
  const vocab = Object.fromEntries(Array.from({ length: vocabulary }, (_, id) => [String(id), id]));
  const model = { type: 'WordLevel', vocab, unk_token: '0' };
  const tokenizer = { version: '1.0', added_tokens: [], normalizer: null, pre_tokenizer: { type: 'WhitespaceSplit' }, post_processor: null, decoder: null, model }; // prettier-ignore
  writeFileSync(join(folder, 'tokenizer.json'), JSON.stringify(tokenizer));
  writeFileSync(join(folder, 'tokenizer_config.json'), JSON.stringify({ tokenizer_class: 'PreTrainedTokenizerFast' }));
}

function randomTensors({ hidden, intermediate, layers, heads, kvHeads, headDim, vocabulary }: RandomShape, seed: number): Tensors {
  const rng = createRng(seed);
  const matrix = (rows: number, columns: number): Tensors[string] => {
    const scale = Math.sqrt(3 / columns);
    return { shape: [rows, columns], data: Float32Array.from({ length: rows * columns }, () => (2 * rng.uniform() - 1) * scale) };
  };
  const ones = (size: number): Tensors[string] => ({ shape: [size], data: new Float32Array(size).fill(1) });
  const tensors: Tensors = { 'model.embed_tokens.weight': matrix(vocabulary, hidden), 'model.norm.weight': ones(hidden) };
  for (let i = 0; i < layers; i++) {
    Object.assign(tensors, {
      [`model.layers.${i}.input_layernorm.weight`]: ones(hidden),
      [`model.layers.${i}.self_attn.q_proj.weight`]: matrix(heads * headDim, hidden),
      [`model.layers.${i}.self_attn.k_proj.weight`]: matrix(kvHeads * headDim, hidden),
      [`model.layers.${i}.self_attn.v_proj.weight`]: matrix(kvHeads * headDim, hidden),
      [`model.layers.${i}.self_attn.o_proj.weight`]: matrix(hidden, heads * headDim),
      [`model.layers.${i}.post_attention_layernorm.weight`]: ones(hidden),
      [`model.layers.${i}.mlp.gate_proj.weight`]: matrix(intermediate, hidden),
      [`model.layers.${i}.mlp.up_proj.weight`]: matrix(intermediate, hidden),
      [`model.layers.${i}.mlp.down_proj.weight`]: matrix(hidden, intermediate),
    });
  }
  return tensors;
}
