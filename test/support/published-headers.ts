/**
 * Published models without their weights: the headers of their files, made of their shapes, as a platform that has nothing else. What a plan for memory reads of a
 * model is there; reading a weight fails.
 */
import { readFileSync } from 'node:fs';
import { createNodePlatform } from '../../engine/platform/node.ts';
import type { ByteSource, Platform } from '../../engine/platform/platform.ts';
import { KOKORO_82M } from '../../engine/weights/kokoro/kokoro-82m.ts';
import { ggufHead } from './gguf-file.ts';
import type { Stored } from './gguf-file.ts';

/** The 457 tensors as PyTorch has them. */
const KOKORO_SHAPES = new URL('../fixtures/kokoro-real/shapes.json', import.meta.url);

/** A decoder of the Llama kind, by the names of config.json. */
export interface PublishedDecoder {
  readonly model_type: 'llama' | 'qwen2' | 'qwen3';
  readonly hidden_size: number;
  readonly intermediate_size: number;
  readonly num_hidden_layers: number;
  readonly num_attention_heads: number;
  readonly num_key_value_heads: number;
  readonly head_dim: number;
  readonly vocab_size: number;
  readonly max_position_embeddings: number;
  readonly tie_word_embeddings: boolean;
  readonly rope_theta: number;
  /** The file holds a head although it is the embeddings again. */
  readonly stored_head?: boolean;
}

/** A Whisper: d_model, layers of encoder and decoder, heads, vocabulary, mel bins. */
export interface PublishedWhisper {
  readonly width: number;
  readonly encoderLayers: number;
  readonly decoderLayers: number;
  readonly heads: number;
  readonly vocabulary: number;
  readonly mels: number;
  /** How many of generation_config.json time words. */
  readonly alignmentHeads: number;
}

export interface PublishedModel {
  readonly platform: Platform;
  readonly path: string;
  readonly parameters: number;
  /** Of the file with the weights. */
  readonly fileBytes: number;
}

type Shapes = Readonly<Record<string, readonly number[]>>;
interface HeldFile {
  readonly head: Uint8Array;
  readonly size: number;
}

/** As a folder with one BF16 safetensors file. */
export function publishedFolder(decoder: PublishedDecoder): PublishedModel {
  return safetensorsModel(decoderShapes(decoder), { 'config.json': { rms_norm_eps: 1e-6, hidden_act: 'silu', ...decoder } });
}

/** As a GGUF file whose matrices are of the types that llama.cpp's quantiser gives them; 'Q8_0', or 'Q4_K_M'. */
export function publishedGguf(decoder: PublishedDecoder, quantisation: 'Q8_0' | 'Q4_K_M'): PublishedModel {
  const shapes = decoderShapes(decoder);
  const tensors = Object.entries(shapes).map(([name, shape]) => {
    const type = shape.length === 1 ? F32 : quantisation === 'Q8_0' ? Q8_0 : mediumType(name, shape, decoder);
    const bytes = (product(shape) / type.values) * type.bytes;
    return [ggufName(name), { dimensions: [...shape].reverse(), type: type.id, data: { length: bytes } }] as const;
  });
  const file = ggufHead({ metadata: ggufMetadata(decoder), tensors: Object.fromEntries(tensors) });
  return published(shapes, '/models/model.gguf', new Map([['/models/model.gguf', file]]), file.size);
}

/** As a folder with one F16 safetensors file. */
export function publishedWhisper(whisper: PublishedWhisper): PublishedModel {
  const { width, encoderLayers, decoderLayers, heads, vocabulary, mels, alignmentHeads } = whisper;
  const english = vocabulary < 51865;
  const config = {
    model_type: 'whisper', d_model: width, encoder_layers: encoderLayers, decoder_layers: decoderLayers, encoder_attention_heads: heads,
    decoder_attention_heads: heads, encoder_ffn_dim: 4 * width, decoder_ffn_dim: 4 * width, vocab_size: vocabulary, num_mel_bins: mels,
    max_source_positions: 1500, max_target_positions: 448, activation_function: 'gelu', decoder_start_token_id: 50258, eos_token_id: 50257,
  }; // prettier-ignore
  const preprocessor = { feature_size: mels, sampling_rate: 16000, hop_length: 160, n_fft: 400, chunk_length: 30 };
  const alignment_heads = Array.from({ length: alignmentHeads }, (_, i) => [i % decoderLayers, Math.floor(i / decoderLayers)]);
  const generation = english
    ? { alignment_heads }
    : { alignment_heads, no_timestamps_token_id: 50363, lang_to_id: { '<|en|>': 50259 }, task_to_id: { transcribe: 50359 } };
  const files = { 'config.json': config, 'preprocessor_config.json': preprocessor, 'generation_config.json': generation };
  return safetensorsModel(whisperShapes(whisper), files);
}

/** Kokoro-82M as a folder with one F16 safetensors file. */
export function publishedKokoro(): PublishedModel {
  return safetensorsModel(JSON.parse(readFileSync(KOKORO_SHAPES, 'utf8')) as Shapes, { 'config.json': KOKORO_82M });
}

const product = (shape: readonly number[]): number => shape.reduce((a, b) => a * b, 1);

function decoderShapes(decoder: PublishedDecoder): Shapes {
  const { hidden_size: hidden, intermediate_size: inner, head_dim: dim, vocab_size: vocabulary } = decoder;
  const [rows, kvRows] = [decoder.num_attention_heads * dim, decoder.num_key_value_heads * dim];
  const layer: Shapes = {
    'input_layernorm.weight': [hidden],
    'self_attn.q_proj.weight': [rows, hidden],
    'self_attn.k_proj.weight': [kvRows, hidden],
    'self_attn.v_proj.weight': [kvRows, hidden],
    'self_attn.o_proj.weight': [hidden, rows],
    'post_attention_layernorm.weight': [hidden],
    'mlp.gate_proj.weight': [inner, hidden],
    'mlp.up_proj.weight': [inner, hidden],
    'mlp.down_proj.weight': [hidden, inner],
    ...(decoder.model_type === 'qwen2' && { 'self_attn.q_proj.bias': [rows], 'self_attn.k_proj.bias': [kvRows], 'self_attn.v_proj.bias': [kvRows] }),
    ...(decoder.model_type === 'qwen3' && { 'self_attn.q_norm.weight': [dim], 'self_attn.k_norm.weight': [dim] }),
  }; // prettier-ignore
  const layers = Array.from({ length: decoder.num_hidden_layers }, (_, i) =>
    Object.entries(layer).map(([name, shape]) => [`model.layers.${i}.${name}`, shape] as const),
  );
  return {
    'model.embed_tokens.weight': [vocabulary, hidden],
    'model.norm.weight': [hidden],
    ...((!decoder.tie_word_embeddings || decoder.stored_head) && { 'lm_head.weight': [vocabulary, hidden] }),
    ...Object.fromEntries(layers.flat()),
  };
}

function whisperShapes({ width, encoderLayers, decoderLayers, vocabulary, mels }: PublishedWhisper): Shapes {
  const attention = (name: string): Shapes => ({
    [`${name}.q_proj.weight`]: [width, width],
    [`${name}.q_proj.bias`]: [width],
    [`${name}.k_proj.weight`]: [width, width],
    [`${name}.v_proj.weight`]: [width, width],
    [`${name}.v_proj.bias`]: [width],
    [`${name}.out_proj.weight`]: [width, width],
    [`${name}.out_proj.bias`]: [width],
  });
  const norm = (name: string): Shapes => ({ [`${name}.weight`]: [width], [`${name}.bias`]: [width] });
  const layer = (crosses: boolean): Shapes => ({
    ...norm('self_attn_layer_norm'),
    ...attention('self_attn'),
    ...(crosses && { ...norm('encoder_attn_layer_norm'), ...attention('encoder_attn') }),
    ...norm('final_layer_norm'),
    'fc1.weight': [4 * width, width],
    'fc1.bias': [4 * width],
    'fc2.weight': [width, 4 * width],
    'fc2.bias': [width],
  });
  const layers = (side: 'encoder' | 'decoder', count: number): Shapes =>
    Object.fromEntries(
      Array.from({ length: count }, (_, i) =>
        Object.entries(layer(side === 'decoder')).map(([name, shape]) => [`model.${side}.layers.${i}.${name}`, shape] as const),
      ).flat(),
    );
  return {
    'model.encoder.conv1.weight': [width, mels, 3],
    'model.encoder.conv1.bias': [width],
    'model.encoder.conv2.weight': [width, width, 3],
    'model.encoder.conv2.bias': [width],
    'model.encoder.embed_positions.weight': [1500, width],
    ...layers('encoder', encoderLayers),
    ...norm('model.encoder.layer_norm'),
    'model.decoder.embed_tokens.weight': [vocabulary, width],
    'model.decoder.embed_positions.weight': [448, width],
    ...layers('decoder', decoderLayers),
    ...norm('model.decoder.layer_norm'),
  };
}

interface FileType {
  /** ggml_type. */
  readonly id: number;
  readonly values: number;
  readonly bytes: number;
}

const F32: FileType = { id: 0, values: 1, bytes: 4 };
const Q8_0: FileType = { id: 8, values: 32, bytes: 34 };
const Q5_0: FileType = { id: 6, values: 32, bytes: 22 };
const Q4_K: FileType = { id: 12, values: 256, bytes: 144 };
const Q6_K: FileType = { id: 14, values: 256, bytes: 210 };

/** Q4_K_M: Q6_K for the head and for some layers' values and way down; rows that are no multiple of 256 take the next larger type of 32 (llama-quant.cpp). */
function mediumType(name: string, shape: readonly number[], decoder: PublishedDecoder): FileType {
  const { num_hidden_layers: layers, tie_word_embeddings: isTied, stored_head: hasHead } = decoder;
  const layer = Number(/layers\.(\d+)\./.exec(name)?.[1] ?? 0);
  const eighth = Math.floor(layers / 8);
  const hasMoreBits = layer < eighth || layer >= Math.floor((7 * layers) / 8) || (layer - eighth) % 3 === 2;
  const isHead = name === (isTied && !hasHead ? 'model.embed_tokens.weight' : 'lm_head.weight');
  const isLarge = isHead || (hasMoreBits && /v_proj|down_proj/.test(name));
  if (shape.at(-1)! % 256 !== 0) return isLarge ? Q8_0 : Q5_0;
  return isLarge ? Q6_K : Q4_K;
}

const GGUF_NAMES: Readonly<Record<string, string>> = {
  'model.embed_tokens': 'token_embd', 'model.norm': 'output_norm', lm_head: 'output', input_layernorm: 'attn_norm', 'self_attn.q_proj': 'attn_q',
  'self_attn.k_proj': 'attn_k', 'self_attn.v_proj': 'attn_v', 'self_attn.o_proj': 'attn_output', 'self_attn.q_norm': 'attn_q_norm',
  'self_attn.k_norm': 'attn_k_norm', post_attention_layernorm: 'ffn_norm', 'mlp.gate_proj': 'ffn_gate', 'mlp.up_proj': 'ffn_up', 'mlp.down_proj': 'ffn_down',
}; // prettier-ignore

function ggufName(name: string): string {
  const [, layer, own, kind] = /^(?:model\.layers\.(\d+)\.)?(.*)\.(weight|bias)$/.exec(name)!;
  return `${layer === undefined ? '' : `blk.${layer}.`}${GGUF_NAMES[own!]}.${kind}`;
}

function ggufMetadata(decoder: PublishedDecoder): Readonly<Record<string, Stored>> {
  const type = decoder.model_type;
  const u32 = (value: number): Stored => ({ type: 'u32', value });
  const text = (value: string): Stored => ({ type: 'string', value });
  return {
    'general.architecture': text(type),
    [`${type}.block_count`]: u32(decoder.num_hidden_layers),
    [`${type}.context_length`]: u32(decoder.max_position_embeddings),
    [`${type}.embedding_length`]: u32(decoder.hidden_size),
    [`${type}.feed_forward_length`]: u32(decoder.intermediate_size),
    [`${type}.attention.head_count`]: u32(decoder.num_attention_heads),
    [`${type}.attention.head_count_kv`]: u32(decoder.num_key_value_heads),
    [`${type}.attention.key_length`]: u32(decoder.head_dim),
    [`${type}.attention.value_length`]: u32(decoder.head_dim),
    [`${type}.attention.layer_norm_rms_epsilon`]: { type: 'f32', value: 1e-6 },
    [`${type}.rope.freq_base`]: { type: 'f32', value: decoder.rope_theta },
    'tokenizer.ggml.model': text('gpt2'),
    'tokenizer.ggml.pre': text('qwen2'),
    // How many there are is told by the embeddings.
    'tokenizer.ggml.tokens': { type: 'strings', value: ['a'] },
    'tokenizer.ggml.merges': { type: 'strings', value: [] },
    'tokenizer.ggml.eos_token_id': u32(0),
  };
}

function safetensorsModel(shapes: Shapes, jsons: Readonly<Record<string, object>>): PublishedModel {
  const header: Record<string, object> = {};
  let at = 0;
  for (const [name, shape] of Object.entries(shapes))
    header[name] = { dtype: 'BF16', shape, data_offsets: [at, (at += 2 * product(shape))] };
  const text = new TextEncoder().encode(JSON.stringify(header));
  const head = new Uint8Array(8 + text.length);
  new DataView(head.buffer).setBigUint64(0, BigInt(text.length), true);
  head.set(text, 8);
  const files = new Map<string, HeldFile>([['/models/model/model.safetensors', { head, size: head.length + at }]]);
  for (const [name, json] of Object.entries(jsons)) {
    const bytes = new TextEncoder().encode(JSON.stringify(json));
    files.set(`/models/model/${name}`, { head: bytes, size: bytes.length });
  }
  return published(shapes, '/models/model', files, head.length + at);
}

function published(shapes: Shapes, path: string, files: ReadonlyMap<string, HeldFile>, fileBytes: number): PublishedModel {
  const open = async (name: string): Promise<ByteSource> => {
    const file = files.get(name);
    if (!file) throw new Error(`${name} is no file of the model`);
    const read = async (from: number, length: number): Promise<Uint8Array> => {
      if (from >= file.head.length) throw new Error(`${name}: the bytes from ${from} on are weights, which are not here`);
      // Headers are read ahead of.
      const bytes = new Uint8Array(length);
      bytes.set(file.head.subarray(from, from + length));
      return bytes;
    };
    return { size: file.size, read, close: async () => {} };
  };
  const list = async (folder: string): Promise<readonly string[] | undefined> => {
    const inside = [...files.keys()].filter((name) => name.startsWith(`${folder}/`)).map((name) => name.slice(folder.length + 1));
    return inside.length === 0 ? undefined : inside;
  };
  const platform: Platform = { ...createNodePlatform(), open, list, exists: async (name) => files.has(name) };
  return { platform, path, fileBytes, parameters: Object.values(shapes).reduce((sum, shape) => sum + product(shape), 0) };
}
