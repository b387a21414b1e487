/** A GGUF file of a Llama with one layer, and what tests do with such files. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished } from 'vitest';
import { createNodePlatform } from '../../engine/platform/node.ts';
import type { ModelFolder } from '../../engine/weights/model-folder.ts';
import { openModelFolder } from '../../engine/weights/open-model-folder.ts';
import { ggufFile } from './gguf-file.ts';
import type { GgufContent, Stored, StoredTensor } from './gguf-file.ts';

const platform = createNodePlatform();

export const text = (value: string): Stored => ({ type: 'string', value });
export const u32 = (value: number): Stored => ({ type: 'u32', value });
export const f32 = (value: number): Stored => ({ type: 'f32', value });

/** A tensor whose values count up. */
export function counting(...dimensions: readonly number[]): StoredTensor {
  const size = dimensions.reduce((a, b) => a * b, 1);
  return { dimensions, type: 0, data: new Uint8Array(Float32Array.from({ length: size }, (_, i) => i).buffer) };
}

/** Bytes as GPT-2 spells the letters a to z and the space. */
const LETTERS = [...'abcdefghijklmnopqrstuvwxyz'.split(''), 'Ġ', 'Ċ', ...'0123456789'.split('')];
export const TOKENS = [...LETTERS, 'ab', 'Ġab', 'abc', '<|end|>', '<|start|>', '<tool>', '[PAD44]'];

/** A Llama with one layer, 2 heads of 8 channels and one key/value head. */
export function tiny(): { metadata: Record<string, Stored>; tensors: Record<string, StoredTensor> } {
  const kinds = TOKENS.map((token) => (token.startsWith('<|') ? 3 : token === '<tool>' ? 4 : token.startsWith('[PAD') ? 5 : 1));
  return {
    metadata: {
      'general.architecture': text('llama'),
      'general.file_type': u32(15),
      'llama.block_count': u32(1),
      'llama.context_length': u32(64),
      'llama.embedding_length': u32(16),
      'llama.feed_forward_length': u32(24),
      'llama.attention.head_count': u32(2),
      'llama.attention.head_count_kv': u32(1),
      'llama.attention.layer_norm_rms_epsilon': f32(1e-5),
      'tokenizer.ggml.model': text('gpt2'),
      'tokenizer.ggml.pre': text('smollm'),
      'tokenizer.ggml.tokens': { type: 'strings', value: TOKENS },
      'tokenizer.ggml.token_type': { type: 'i32s', value: kinds },
      'tokenizer.ggml.merges': { type: 'strings', value: ['a b', 'Ġ ab', 'ab c'] },
      'tokenizer.ggml.eos_token_id': u32(TOKENS.indexOf('<|end|>')),
      'tokenizer.ggml.bos_token_id': u32(TOKENS.indexOf('<|start|>')),
      'tokenizer.chat_template': text('{{ bos_token }}{{ messages[0].content }}'),
    },
    tensors: {
      'token_embd.weight': counting(16, TOKENS.length),
      'output_norm.weight': counting(16),
      'blk.0.attn_norm.weight': counting(16),
      'blk.0.attn_q.weight': counting(16, 16),
      'blk.0.attn_k.weight': counting(16, 8),
      'blk.0.attn_v.weight': counting(16, 8),
      'blk.0.attn_output.weight': counting(16, 16),
      'blk.0.ffn_norm.weight': counting(16),
      'blk.0.ffn_gate.weight': counting(16, 24),
      'blk.0.ffn_up.weight': counting(16, 24),
      'blk.0.ffn_down.weight': counting(24, 16),
    },
  };
}

export const withMetadata = (more: Record<string, Stored | undefined>): GgufContent => {
  const { metadata, tensors } = tiny();
  const entries = Object.entries({ ...metadata, ...more }).filter((entry): entry is [string, Stored] => entry[1] !== undefined);
  return { metadata: Object.fromEntries(entries), tensors };
};

export function folder(): string {
  const path = mkdtempSync(join(tmpdir(), 'parley-'));
  onTestFinished(() => rmSync(path, { recursive: true }));
  return path;
}

export function write(content: GgufContent | Uint8Array, name = 'Tiny-Q4_K_M.gguf', path = folder()): string {
  writeFileSync(join(path, name), content instanceof Uint8Array ? content : ggufFile(content));
  return join(path, name);
}

export const open = (content: GgufContent | Uint8Array): Promise<ModelFolder> => openModelFolder(platform, write(content));

/** What the file is refused with: one line that names it. */
export async function refusal(
  content: GgufContent | Uint8Array,
  use: (model: ModelFolder) => Promise<unknown> = async () => undefined,
): Promise<string> {
  const path = write(content);
  const error: unknown = await openModelFolder(platform, path)
    .then(use)
    .then(() => undefined, (thrown: unknown) => thrown); // prettier-ignore
  expect(error).toMatchObject({ name: 'EngineError', code: 'invalid_model' });
  const { message } = error as Error;
  expect(message).not.toMatch(/\n/);
  expect(message).toContain(path);
  return message.replace(path, 'FILE');
}
