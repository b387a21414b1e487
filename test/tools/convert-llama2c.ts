/**
 * Turns a llama2.c checkpoint (.bin of version 0, tokenizer .bin) into a Hugging Face folder:
 * `npx tsx test/tools/convert-llama2c.ts model.bin tokenizer.bin folder`.
 *
 * llama2.c rotates neighbouring channels (2i, 2i + 1), Hugging Face channels (i, i + D/2): the rows of wq and wk are reordered.
 */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { safetensorsFile } from '../support/safetensors-file.ts';
import type { Tensors } from '../support/safetensors-file.ts';

/** Tokens 0, 1, 2, which the tokenizer file spells in its own way. */
const SPECIAL = ['<unk>', '<s>', '</s>'];
/** Special tokens and the 256 bytes: never the result of a merge. */
const FIRST_PIECE = 259;

/** Writes config.json, model.safetensors, tokenizer.json and tokenizer_config.json. */
export function convertLlama2c(modelPath: string, tokenizerPath: string, folder: string): void {
  mkdirSync(folder, { recursive: true });
  const bytes = readFileSync(modelPath);
  const words = new Int32Array(bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + 28));
  const [dim, hiddenDim, layers, heads, kvHeads, signedVocabulary, context] = Array.from(words) as [number, number, number, number, number, number, number]; // prettier-ignore
  const vocabulary = Math.abs(signedVocabulary);
  const shape = { dim, hiddenDim, layers, heads, kvHeads, vocabulary, context, tied: signedVocabulary > 0 };
  const tensors = readTensors(new Float32Array(bytes.buffer.slice(bytes.byteOffset + 28, bytes.byteOffset + bytes.length)), shape);
  writeFileSync(join(folder, 'model.safetensors'), safetensorsFile(tensors));
  const config = {
    architectures: ['LlamaForCausalLM'], model_type: 'llama', hidden_size: dim, intermediate_size: hiddenDim, num_hidden_layers: layers,
    num_attention_heads: heads, num_key_value_heads: kvHeads, vocab_size: vocabulary, max_position_embeddings: context, rms_norm_eps: 1e-5,
    rope_theta: 10000, hidden_act: 'silu', tie_word_embeddings: shape.tied, bos_token_id: 1, eos_token_id: 2, torch_dtype: 'float32',
  }; // prettier-ignore
  writeJson(join(folder, 'config.json'), config);
  writeJson(join(folder, 'tokenizer.json'), tokenizerJson(readFileSync(tokenizerPath), vocabulary));
  const names = { bos_token: '<s>', eos_token: '</s>', unk_token: '<unk>' };
  writeJson(join(folder, 'tokenizer_config.json'), { tokenizer_class: 'LlamaTokenizer', add_bos_token: true, ...names });
}

interface Shape {
  readonly dim: number;
  readonly hiddenDim: number;
  readonly layers: number;
  readonly heads: number;
  readonly kvHeads: number;
  readonly vocabulary: number;
  readonly context: number;
  readonly tied: boolean;
}

/** The file is one array after the other, each with all layers. */
function readTensors(weights: Float32Array, { dim, hiddenDim, layers, heads, kvHeads, vocabulary, context, tied }: Shape): Tensors {
  let at = 0;
  const take = (...shape: number[]): { shape: number[]; data: Float32Array } => {
    const size = shape.reduce((a, b) => a * b, 1);
    const data = weights.slice(at, at + size);
    if (data.length !== size) throw new Error(`the model file is cut short at value ${at}`);
    at += size;
    return { shape, data };
  };
  const perLayer = (...shape: number[]): { shape: number[]; data: Float32Array }[] => Array.from({ length: layers }, () => take(...shape));
  const headDim = dim / heads;
  const kvDim = kvHeads * headDim;
  const embedding = take(vocabulary, dim);
  const attentionNorm = perLayer(dim);
  const q = perLayer(dim, dim);
  const k = perLayer(kvDim, dim);
  const v = perLayer(kvDim, dim);
  const output = perLayer(dim, dim);
  const mlpNorm = perLayer(dim);
  const gate = perLayer(hiddenDim, dim);
  const down = perLayer(dim, hiddenDim);
  const up = perLayer(hiddenDim, dim);
  const norm = take(dim);
  at += context * headDim; // cosines and sines, which follow from the config
  const tensors: Tensors = { 'model.embed_tokens.weight': embedding, 'model.norm.weight': norm };
  if (!tied) tensors['lm_head.weight'] = take(vocabulary, dim);
  for (let i = 0; i < layers; i++) {
    const set = (name: string, tensor: Tensors[string]): void => void (tensors[`model.layers.${i}.${name}.weight`] = tensor);
    set('input_layernorm', attentionNorm[i]!);
    set('self_attn.q_proj', halfSplit(q[i]!, headDim));
    set('self_attn.k_proj', halfSplit(k[i]!, headDim));
    set('self_attn.v_proj', v[i]!);
    set('self_attn.o_proj', output[i]!);
    set('post_attention_layernorm', mlpNorm[i]!);
    set('mlp.gate_proj', gate[i]!);
    set('mlp.down_proj', down[i]!);
    set('mlp.up_proj', up[i]!);
  }
  return tensors;
}

/** Row 2i of a head becomes row i, row 2i + 1 becomes row i + D/2. */
function halfSplit({ shape, data }: Tensors[string], headDim: number): Tensors[string] {
  const columns = shape[1]!;
  const out = new Float32Array(data.length);
  for (let row = 0; row < shape[0]!; row++) {
    const [head, channel] = [Math.floor(row / headDim), row % headDim];
    const to = head * headDim + Math.floor(channel / 2) + (channel % 2) * (headDim / 2);
    out.set(data.subarray(row * columns, (row + 1) * columns), to * columns);
  }
  return { shape, data: out };
}

/**
 * tokenizer.bin: the longest token's length, then for each token a score (f32), a length and bytes. SentencePiece merges the pair whose union has
 * the best score, so the merge list is every split of a token into two tokens, by the token's score.
 */
function tokenizerJson(bytes: Buffer, vocabulary: number): unknown {
  const tokens: { text: string; score: number }[] = [];
  let at = 4;
  for (let i = 0; i < vocabulary; i++) {
    const [score, length] = [bytes.readFloatLE(at), bytes.readInt32LE(at + 4)];
    const text = bytes.toString('utf8', at + 8, at + 8 + length);
    tokens.push({ text: SPECIAL[i] ?? text.replaceAll(' ', '\u2581'), score });
    at += 8 + length;
  }
  const vocab = Object.fromEntries(tokens.map(({ text }, id) => [text, id]));
  const merges = tokens
    .slice(FIRST_PIECE)
    .flatMap(({ text, score }) => {
      const letters = [...text];
      return Array.from(
        { length: letters.length - 1 },
        (_, i) => [letters.slice(0, i + 1).join(''), letters.slice(i + 1).join('')] as const,
      )
        .filter(([left, right]) => left in vocab && right in vocab)
        .map((pair) => ({ pair, score }));
    })
    .sort((a, b) => b.score - a.score)
    .map(({ pair }) => pair);
  const special = SPECIAL.map((content, id) => ({ id, content, single_word: false, lstrip: false, rstrip: false, normalized: false, special: true })); // prettier-ignore
  return {
    version: '1.0', truncation: null, padding: null, added_tokens: special,
    normalizer: { type: 'Sequence', normalizers: [{ type: 'Prepend', prepend: '\u2581' }, { type: 'Replace', pattern: { String: ' ' }, content: '\u2581' }] },
    pre_tokenizer: null,
    post_processor: {
      type: 'TemplateProcessing', single: [{ SpecialToken: { id: '<s>', type_id: 0 } }, { Sequence: { id: 'A', type_id: 0 } }], pair: [],
      special_tokens: { '<s>': { id: '<s>', ids: [1], tokens: ['<s>'] } },
    },
    decoder: {
      type: 'Sequence',
      decoders: [{ type: 'Replace', pattern: { String: '\u2581' }, content: ' ' }, { type: 'ByteFallback' }, { type: 'Fuse' }, { type: 'Strip', content: ' ', start: 1, stop: 0 }],
    },
    model: { type: 'BPE', dropout: null, unk_token: '<unk>', continuing_subword_prefix: null, end_of_word_suffix: null, fuse_unk: true, byte_fallback: true, vocab, merges },
  }; // prettier-ignore
}

function writeJson(path: string, value: unknown): void {
  writeFileSync(path, `${JSON.stringify(value)}\n`);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const [model, tokenizer, folder] = process.argv.slice(2);
  if (!model || !tokenizer || !folder) throw new Error('usage: convert-llama2c.ts model.bin tokenizer.bin folder');
  convertLlama2c(model, tokenizer, folder);
}
