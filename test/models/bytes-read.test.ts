/** A step of decoding reads its weights and the keys and values of its sequences once, whatever the weights are stored as. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Device } from '../../engine/gpu/device.ts';
import { createRng } from '../../engine/util/rng.ts';
import { countBytesRead } from '../support/bytes-read.ts';
import { DecoderHarness } from '../support/decoder-harness.ts';
import { testDevice } from '../support/device.ts';
import { ggufFile } from '../support/gguf-file.ts';
import type { StoredTensor } from '../support/gguf-file.ts';
import { randomBlocks } from '../support/random-blocks.ts';
import { folder, tiny, u32 } from '../support/tiny-gguf.ts';

/** The proportions of a Llama of 0.5 B. */
const SHAPE = { hidden: 512, intermediate: 1536, layers: 2, heads: 8, kvHeads: 2, headDim: 64, vocabulary: 2048 };
const GGML = { F16: 1, Q4_0: 2, Q8_0: 8, Q4_K: 12 } as const;
type Kind = keyof typeof GGML;
const CONTEXT = 1024;
const POSITIONS = 1000;

let device: Device;
beforeAll(async () => {
  device = await testDevice();
});
afterAll(() => {
  expect(device.errors).toEqual([]);
  device.close();
});

/** A file of random weights of this shape, with an output of its own. */
function randomLlama(kind: Kind): Uint8Array {
  const { hidden, intermediate, layers, heads, kvHeads, headDim, vocabulary } = SHAPE;
  const rng = createRng(1);
  const matrix = (columns: number, rows: number): StoredTensor => {
    const size = columns * rows;
    const data = kind === 'F16' ? new Uint8Array(new Uint16Array(size).fill(0x2400).buffer) : randomBlocks(rng, kind, size).bytes;
    return { dimensions: [columns, rows], type: GGML[kind], data };
  };
  const vector = (): StoredTensor => ({ dimensions: [hidden], type: 0, data: new Uint8Array(new Float32Array(hidden).fill(1).buffer) });
  const tensors: Record<string, StoredTensor> = {
    'token_embd.weight': matrix(hidden, vocabulary),
    'output.weight': matrix(hidden, vocabulary),
    'output_norm.weight': vector(),
  };
  for (let layer = 0; layer < layers; layer++) {
    const at = `blk.${layer}`;
    Object.assign(tensors, {
      [`${at}.attn_norm.weight`]: vector(),
      [`${at}.attn_q.weight`]: matrix(hidden, heads * headDim),
      [`${at}.attn_k.weight`]: matrix(hidden, kvHeads * headDim),
      [`${at}.attn_v.weight`]: matrix(hidden, kvHeads * headDim),
      [`${at}.attn_output.weight`]: matrix(heads * headDim, hidden),
      [`${at}.ffn_norm.weight`]: vector(),
      [`${at}.ffn_gate.weight`]: matrix(hidden, intermediate),
      [`${at}.ffn_up.weight`]: matrix(hidden, intermediate),
      [`${at}.ffn_down.weight`]: matrix(intermediate, hidden),
    });
  }
  const { metadata } = tiny();
  const words = Array.from({ length: vocabulary }, (_, i) => `<${i}>`);
  return ggufFile({
    tensors,
    metadata: {
      ...metadata,
      'llama.block_count': u32(layers),
      'llama.context_length': u32(CONTEXT),
      'llama.embedding_length': u32(hidden),
      'llama.feed_forward_length': u32(intermediate),
      'llama.attention.head_count': u32(heads),
      'llama.attention.head_count_kv': u32(kvHeads),
      'tokenizer.ggml.tokens': { type: 'strings', value: words },
      'tokenizer.ggml.token_type': { type: 'i32s', value: words.map(() => 1) },
      'tokenizer.ggml.merges': { type: 'strings', value: [] },
      'tokenizer.ggml.eos_token_id': u32(0),
      'tokenizer.ggml.bos_token_id': u32(1),
    },
  });
}

/** Bytes of a type that stand for 32 values on the device. */
const PER_BLOCK: Readonly<Record<Kind, number>> = { F16: 64, Q8_0: 34, Q4_0: 18, Q4_K: 18.5 };

test.each(['F16', 'Q8_0', 'Q4_0', 'Q4_K'] as const)('%s', async (kind) => {
  const path = join(folder(), `llama-${kind}.gguf`);
  writeFileSync(path, randomLlama(kind));
  const { hidden, intermediate, layers, heads, kvHeads, headDim, vocabulary } = SHAPE;
  const perLayer = hidden * headDim * (2 * heads + 2 * kvHeads) + 3 * hidden * intermediate;
  const weights = ((layers * perLayer + hidden * vocabulary) / 32) * PER_BLOCK[kind];
  const pages = layers * 2 * kvHeads * headDim * 2 * POSITIONS;
  for (const rows of [1, 4]) {
    const storage = { float: 'f16', keepBlocks: true, quantization: 'none' } as const;
    const harness = await DecoderHarness.load(device, path, { storage, dtype: 'f16', context: CONTEXT, sequences: rows, rows });
    const read = countBytesRead(device, () => POSITIONS);
    await harness.step(Array.from({ length: rows }, (_, sequence) => ({ sequence, start: POSITIONS - 1, tokens: [sequence + 2] })));
    const least = weights + rows * pages;
    expect(read.matrices).toBeGreaterThanOrEqual(weights);
    expect(read.pages).toBeGreaterThanOrEqual(rows * pages);
    expect((read.matrices + read.pages + read.rest) / least, `${rows} rows: ${JSON.stringify(read)}`).toBeLessThan(1.05);
  }
});
