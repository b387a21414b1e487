/** The reference of what floats are packed to at load: byte for byte PyPI `gguf`'s blocks (test/tools/dump_gguf_quantised.py). */
import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { BLOCK_FORMATS } from '../../engine/weights/block-types.ts';
import { quantizeRows } from '../reference/quantize.ts';

const data = new Uint8Array(readFileSync(new URL('../fixtures/gguf/quantised.bin', import.meta.url)));
const VALUES = 512;

test('floats become the blocks that gguf makes of them', () => {
  const values = new Float32Array(data.slice(0, VALUES * 4).buffer);
  let at = VALUES * 4;
  for (const type of ['Q8_0', 'Q4_0'] as const) {
    const bytes = (VALUES / 32) * BLOCK_FORMATS[type].bytes;
    expect(quantizeRows(values, type), type).toEqual(data.slice(at, at + bytes));
    at += bytes;
  }
  expect(at).toBe(data.length);
});
