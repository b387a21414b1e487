/** What a model's files say of it before it is loaded, in every format: the numbers of its published configuration, without a device. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { resolveConfig } from '../../engine/config.ts';
import { createNodePlatform } from '../../engine/platform/node.ts';
import { describeModel } from '../../engine/tasks/describe-model.ts';
import { kokoroFormat } from '../support/kokoro-formats.ts';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const platform = createNodePlatform();
const describeAt = (path: string) => describeModel(platform, { path: join(ROOT, path) }, resolveConfig({}));

test('a chat model: its context, its weights as they are stored on the device, and what a token of context takes', async () => {
  const { weightBytes, ...rest } = await describeAt('models/parley-chat');
  // Six layers of two key/value heads of 64 channels, keys and values, in two bytes.
  const tokenBytes = 6 * 2 * 2 * 64 * 2;
  expect(rest).toEqual({ id: 'parley-chat', task: 'chat', architecture: 'llama', ownContextLength: 2048, tokenBytes });
  // The file is of half precision too, and has a header.
  const { length } = readFileSync(join(ROOT, 'models/parley-chat/model.safetensors'));
  expect(weightBytes).toBeGreaterThan(0.99 * length);
  expect(weightBytes).toBeLessThan(1.01 * length);
});

test('layers that see a window only: what they take does not grow with the text', async () => {
  // Three layers of one head of 32 channels in two bytes, of which two see 14 positions: a page and the one before it.
  const page = 16 * 2 * 32 * 2;
  expect(await describeAt('test/fixtures/llama-tiny-random/gemma3')).toMatchObject({ tokenBytes: page / 16, windowBytes: 2 * 2 * page });
  // All of them do.
  const everywhere = await describeAt('test/fixtures/llama-tiny-random/mistral');
  expect(everywhere).toMatchObject({ tokenBytes: 0, windowBytes: 2 * 2 * 16 * 2 * 16 * 2 });
  expect(await describeAt('test/fixtures/llama-tiny-random/llama')).not.toHaveProperty('windowBytes');
});

test('a GGUF file, by its header', async () => {
  const found = await describeAt('test/fixtures/gguf/tiny/qwen3-Q4_K_M.gguf');
  expect(found).toMatchObject({ id: 'qwen3', task: 'chat', architecture: 'qwen3', format: 'GGUF Q4_K_M' });
});

test('a speech model: its voices and its rate', async () => {
  const { voices, ...rest } = await describeAt('models/parley-speech');
  expect(rest).toMatchObject({ task: 'speech', architecture: 'kokoro', sampleRate: 24000 });
  expect(voices).toHaveLength(19);
  const folder = kokoroFormat('onnx-int8');
  try {
    const published = await describeModel(platform, { path: folder }, resolveConfig({}));
    expect(published).toMatchObject({ task: 'speech', format: 'onnx', voices: ['af_one', 'bm_two'] });
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test('a transcription model: its languages, of English-only ones English', async () => {
  expect(await describeAt('models/parley-transcribe')).toMatchObject({ task: 'transcription', languages: ['en'], translates: false });
  expect(await describeAt('test/fixtures/ctranslate2-tiny-random/float16')).toMatchObject({ task: 'transcription', format: 'CTranslate2' });
});

test('a model of a type that no code is for is refused by name', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'parley-'));
  writeFileSync(join(folder, 'config.json'), '{"model_type":"bert"}');
  try {
    const refused = describeModel(platform, { path: folder }, resolveConfig({}));
    await expect(refused).rejects.toThrow(/^config.json says model_type bert; known are llama, /);
  } finally {
    rmSync(folder, { recursive: true });
  }
});
