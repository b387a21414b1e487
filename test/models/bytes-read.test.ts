/** A step of decoding reads its weights and the keys and values of its sequences once, whatever the weights are stored as. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import type { Device } from '../../engine/gpu/device.ts';
import { APART_CHANNELS } from '../../engine/ops/kv.ts';
import { createRng } from '../../engine/util/rng.ts';
import type { BlockType } from '../../engine/weights/block-types.ts';
import { countWork } from '../support/kernel-work.ts';
import { DecoderHarness } from '../support/decoder-harness.ts';
import { testDevice } from '../support/device.ts';
import { ggufFile } from '../support/gguf-file.ts';
import { llamaMetadata, llamaTensors } from '../support/llama-gguf.ts';
import type { PlannedTensor } from '../support/llama-gguf.ts';
import { randomBlocks } from '../support/random-blocks.ts';
import { folder } from '../support/tiny-gguf.ts';

/** The proportions of a Llama of 0.5 B. */
const SHAPE = { hidden: 512, intermediate: 1536, layers: 2, heads: 8, kvHeads: 2, headDim: 64, vocabulary: 2048, maxPositions: 1024 };
type Kind = 'F16' | 'Q8_0' | 'Q4_0' | 'Q4_K';
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
  const rng = createRng(1);
  const dataOf = ({ kind: type, bytes, dimensions }: PlannedTensor): Uint8Array => {
    if (type === 'F32') return new Uint8Array(new Float32Array(bytes / 4).fill(1).buffer);
    if (type === 'F16') return new Uint8Array(new Uint16Array(bytes / 2).fill(0x2400).buffer);
    return randomBlocks(rng, type as BlockType, dimensions[0]! * dimensions[1]!).bytes;
  };
  const tensors = Object.entries(llamaTensors(SHAPE, kind)).map(
    ([name, planned]) => [name, { ...planned, data: dataOf(planned) }] as const,
  );
  return ggufFile({ metadata: llamaMetadata(SHAPE), tensors: Object.fromEntries(tensors) });
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
    const harness = await DecoderHarness.load(device, path, { storage, dtype: 'f16', context: SHAPE.maxPositions, sequences: rows, rows });
    const read = countWork(device, () => POSITIONS);
    onTestFinished(() => read.stop());
    await harness.step(Array.from({ length: rows }, (_, sequence) => ({ sequence, start: POSITIONS - 1, tokens: [sequence + 2] })));
    const least = weights + rows * pages;
    expect(read.matrices).toBeGreaterThanOrEqual(weights);
    expect(read.pages).toBeGreaterThanOrEqual(rows * pages);
    // The same kernel by kernel: all that is read, and what is computed with it.
    const kernels = [...read.kernels].map(([name, work]) => ({ name, ...work }));
    const of = (what: (name: string) => boolean, key: 'calls' | 'read' | 'written' | 'operations'): number =>
      kernels.filter(({ name }) => what(name)).reduce((sum, work) => sum + work[key], 0);
    const isProduct = (name: string): boolean => name.startsWith('linear');
    const isAttention = (name: string): boolean => name === 'paged_attention';
    expect(of(() => true, 'read')).toBe(read.matrices + read.pages + read.rest);
    // Of few rows, heads go to their pages at once, and gates do not come out of a product.
    const isHeads = (name: string): boolean => name === 'project_heads';
    const fused = read.kernels.has('project_heads');
    expect(of((name) => isProduct(name) || isHeads(name), 'calls')).toBe(4 * layers + 1);
    const width = (heads + 2 * kvHeads) * headDim;
    const outputs = layers * ((fused ? 0 : width) + 2 * hidden + (fused ? 1 : 2) * intermediate) + vocabulary;
    expect(of(isProduct, 'written')).toBe(rows * outputs * 4);
    const inHeads = fused ? layers * width * hidden : 0;
    expect(of(isProduct, 'operations')).toBe(rows * (2 * (layers * perLayer + hidden * vocabulary - inHeads) + outputs));
    expect(of(isHeads, 'operations')).toBe(2 * rows * inHeads + of(isHeads, 'written') / 4);
    const attended = heads * headDim;
    expect(of(isAttention, 'operations')).toBe(rows * layers * attended * (4 * POSITIONS + 1));
    // One position's keys and values, in half precision, beside the queries, which have room for what int8 pages keep apart.
    expect(of((name) => name === 'rope_kv_store' || isHeads(name), 'written')).toBe(
      rows * layers * (2 * kvHeads * headDim * 2 + heads * (headDim + APART_CHANNELS) * 4),
    );
    expect((read.matrices + read.pages + read.rest) / least, `${rows} rows: ${JSON.stringify(read)}`).toBeLessThan(1.05);
  }
});
