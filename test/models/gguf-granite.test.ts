/**
 * Granite 4 as llama.cpp's converter writes it: the fixtures of families.test.ts, whose logits transformers gives (test/tools/dump_gguf_granite.py).
 */
import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Device } from '../../engine/gpu/device.ts';
import { createNodePlatform } from '../../engine/platform/node.ts';
import { openSafetensors } from '../../engine/weights/safetensors.ts';
import { expectClose } from '../support/compare.ts';
import { DecoderHarness } from '../support/decoder-harness.ts';
import { testDevice } from '../support/device.ts';
import { unlessPassed } from '../support/known-cases.ts';

const FIXTURES = fileURLToPath(new URL('../fixtures', import.meta.url));
const CONVERTED = join(FIXTURES, 'gguf', 'granite-hybrid');

let device: Device;
beforeAll(async () => {
  device = await testDevice();
});
afterAll(() => device.close());

test.each(readdirSync(CONVERTED))('%s: the logits are transformers', async (file) => {
  const folder = join(FIXTURES, 'llama-tiny-random', file.replace('.gguf', ''));
  const { prompt } = JSON.parse(readFileSync(join(folder, 'golden.json'), 'utf8')) as { prompt: number[] };
  const golden = await openSafetensors(createNodePlatform({ log: () => undefined }), folder, 'golden.safetensors');
  const logits = await golden.read('logits');
  await golden.close();
  await unlessPassed(
    device,
    { expected: [logits] },
    async (on) => (await DecoderHarness.load(on, join(CONVERTED, file))).step([{ sequence: 0, start: 0, tokens: prompt }]),
    (rows) => expectClose(file, Float32Array.from(rows.flatMap((row) => [...row])), logits, 1e-6),
  );
  expect(device.errors).toEqual([]);
});
