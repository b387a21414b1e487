/** GGUF files of Llamas of any shape whose weights mean nothing. */
import { closeSync, openSync, writeSync } from 'node:fs';
import { STORAGE_TYPES } from '../../engine/weights/gguf/storage-types.ts';
import { ggufHead } from './gguf-file.ts';
import type { Stored } from './gguf-file.ts';
import type { RandomShape } from './random-checkpoint.ts';
import { tiny, u32 } from './tiny-gguf.ts';

/** Where a tensor's bytes would go. */
export interface PlannedTensor {
  /** Columns first. */
  readonly dimensions: readonly number[];
  /** ggml_type, and the engine's name of it. */
  readonly type: number;
  readonly kind: string;
  readonly bytes: number;
}

/** The tensors of such a model with an output of its own, matrices in the type of this name, in the order of a file. */
export function llamaTensors(shape: RandomShape, kind: string): Readonly<Record<string, PlannedTensor>> {
  const { hidden, intermediate, layers, heads, kvHeads, headDim, vocabulary } = shape;
  const planned = (name: string, ...dimensions: readonly number[]): PlannedTensor => {
    const [type, { values, bytes }] = [...STORAGE_TYPES].find(([, row]) => row.name === name)!;
    return { dimensions, type, kind: name, bytes: (dimensions.reduce((a, b) => a * b, 1) / values) * bytes };
  };
  const matrix = (columns: number, rows: number): PlannedTensor => planned(kind, columns, rows);
  const vector = planned('F32', hidden);
  const tensors: Record<string, PlannedTensor> = {
    'token_embd.weight': matrix(hidden, vocabulary),
    'output.weight': matrix(hidden, vocabulary),
    'output_norm.weight': vector,
  };
  for (let layer = 0; layer < layers; layer++) {
    const at = `blk.${layer}`;
    Object.assign(tensors, {
      [`${at}.attn_norm.weight`]: vector,
      [`${at}.attn_q.weight`]: matrix(hidden, heads * headDim),
      [`${at}.attn_k.weight`]: matrix(hidden, kvHeads * headDim),
      [`${at}.attn_v.weight`]: matrix(hidden, kvHeads * headDim),
      [`${at}.attn_output.weight`]: matrix(heads * headDim, hidden),
      [`${at}.ffn_norm.weight`]: vector,
      [`${at}.ffn_gate.weight`]: matrix(hidden, intermediate),
      [`${at}.ffn_up.weight`]: matrix(hidden, intermediate),
      [`${at}.ffn_down.weight`]: matrix(intermediate, hidden),
    });
  }
  return tensors;
}

/** Its metadata; tokens are spelled by their ids. */
export function llamaMetadata({
  hidden,
  intermediate,
  layers,
  heads,
  kvHeads,
  headDim,
  vocabulary,
  maxPositions,
}: RandomShape): Record<string, Stored> {
  const words = Array.from({ length: vocabulary }, (_, i) => `<${i}>`);
  return {
    ...tiny().metadata,
    'llama.block_count': u32(layers),
    'llama.context_length': u32(maxPositions),
    'llama.embedding_length': u32(hidden),
    'llama.feed_forward_length': u32(intermediate),
    'llama.attention.head_count': u32(heads),
    'llama.attention.head_count_kv': u32(kvHeads),
    'llama.rope.dimension_count': u32(headDim),
    'tokenizer.ggml.tokens': { type: 'strings', value: words },
    'tokenizer.ggml.token_type': { type: 'i32s', value: words.map(() => 1) },
    'tokenizer.ggml.merges': { type: 'strings', value: ['< 0', '0 >'] },
    'tokenizer.ggml.eos_token_id': u32(0),
    'tokenizer.ggml.bos_token_id': u32(1),
  };
}

/** Writes such a model, all bytes of whose matrices are the same: what is stored does not change what loading and computing take. */
export function writeLlamaGguf(path: string, shape: RandomShape, kind: string): void {
  const tensors = llamaTensors(shape, kind);
  const file = openSync(path, 'w');
  const planned = Object.entries(tensors).map(([name, { bytes, ...tensor }]) => [name, { ...tensor, data: { length: bytes } }] as const);
  const { head } = ggufHead({ metadata: llamaMetadata(shape), tensors: Object.fromEntries(planned) });
  writeSync(file, head);
  writeSync(file, Buffer.alloc(-head.length & 31));
  const chunk = Buffer.alloc(1 << 24, 0x2a);
  for (const { bytes } of Object.values(tensors)) {
    for (let left = bytes; left > 0; left -= chunk.length) writeSync(file, chunk, 0, Math.min(left, chunk.length));
    writeSync(file, Buffer.alloc(-bytes & 31));
  }
  closeSync(file);
}
