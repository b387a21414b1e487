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
  writeFileSync(join(folder, 'config.json'), JSON.stringify(configOf(shape)));
  writeFileSync(join(folder, 'model.safetensors'), safetensorsFile(randomTensors(shape, seed)));
  writeNumberTokenizer(folder, shape.vocabulary);
}

/** The config.json and the shapes of the tensors of such a checkpoint. */
export function randomShapes(shape: RandomShape): {
  readonly config: object;
  readonly tensors: Readonly<Record<string, readonly number[]>>;
} {
  return { config: configOf(shape), tensors: shapesOf(shape) };
}

function configOf(shape: RandomShape): object {
  return {
    architectures: ['LlamaForCausalLM'], model_type: 'llama', hidden_size: shape.hidden, intermediate_size: shape.intermediate,
    num_hidden_layers: shape.layers, num_attention_heads: shape.heads, num_key_value_heads: shape.kvHeads, head_dim: shape.headDim,
    vocab_size: shape.vocabulary, max_position_embeddings: shape.maxPositions, rms_norm_eps: 1e-5, rope_theta: 10000,
    hidden_act: 'silu', tie_word_embeddings: true, bos_token_id: null, eos_token_id: null,
  }; // prettier-ignore
}

/** Writes a tokenizer whose token i is the word `i`, for checkpoints without one: an answer's text is then the list of its tokens. */
export function writeNumberTokenizer(folder: string, vocabulary: number): void {
  const vocab = Object.fromEntries(Array.from({ length: vocabulary }, (_, id) => [String(id), id]));
  const model = { type: 'WordLevel', vocab, unk_token: '0' };
  const tokenizer = { version: '1.0', added_tokens: [], normalizer: null, pre_tokenizer: { type: 'WhitespaceSplit' }, post_processor: null, decoder: null, model }; // prettier-ignore
  writeFileSync(join(folder, 'tokenizer.json'), JSON.stringify(tokenizer));
  writeFileSync(join(folder, 'tokenizer_config.json'), JSON.stringify({ tokenizer_class: 'PreTrainedTokenizerFast' }));
}

function shapesOf({
  hidden,
  intermediate,
  layers,
  heads,
  kvHeads,
  headDim,
  vocabulary,
}: RandomShape): Readonly<Record<string, readonly number[]>> {
  const shapes: Record<string, readonly number[]> = { 'model.embed_tokens.weight': [vocabulary, hidden], 'model.norm.weight': [hidden] };
  for (let i = 0; i < layers; i++) {
    Object.assign(shapes, {
      [`model.layers.${i}.input_layernorm.weight`]: [hidden],
      [`model.layers.${i}.self_attn.q_proj.weight`]: [heads * headDim, hidden],
      [`model.layers.${i}.self_attn.k_proj.weight`]: [kvHeads * headDim, hidden],
      [`model.layers.${i}.self_attn.v_proj.weight`]: [kvHeads * headDim, hidden],
      [`model.layers.${i}.self_attn.o_proj.weight`]: [hidden, heads * headDim],
      [`model.layers.${i}.post_attention_layernorm.weight`]: [hidden],
      [`model.layers.${i}.mlp.gate_proj.weight`]: [intermediate, hidden],
      [`model.layers.${i}.mlp.up_proj.weight`]: [intermediate, hidden],
      [`model.layers.${i}.mlp.down_proj.weight`]: [hidden, intermediate],
    });
  }
  return shapes;
}

/** Matrices of uniform values, norms of ones. */
function randomTensors(shape: RandomShape, seed: number): Tensors {
  const rng = createRng(seed);
  return Object.fromEntries(
    Object.entries(shapesOf(shape)).map(([name, sizes]) => {
      const [rows = 1, columns] = sizes;
      if (columns === undefined) return [name, { shape: sizes, data: new Float32Array(rows).fill(1) }];
      const scale = Math.sqrt(3 / columns);
      return [name, { shape: sizes, data: Float32Array.from({ length: rows * columns }, () => (2 * rng.uniform() - 1) * scale) }];
    }),
  );
}
