/** What a folder is, before anything of it is loaded; the table of docs/formats.md is compared with the registry by the architecture test. */
import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { expectFamily, modelTypeOf, taskOf, typesOf } from '../../engine/model-types.ts';
import { decoderFor } from '../../engine/models/registry.ts';
import type { Json } from '../../engine/util/json.ts';

const configOf = (name: string): Json =>
  JSON.parse(readFileSync(new URL(`../../models/${name}/config.json`, import.meta.url), 'utf8')) as Json;

test.each([
  ['parley-chat', 'chat'],
  ['parley-speech', 'speech'],
  ['parley-transcribe', 'transcription'],
])('%s is known by its config.json', (name, task) => {
  expect(taskOf(modelTypeOf(configOf(name)))).toBe(task);
});

test("Kokoro's config.json as published names no type", () => {
  const { model_type, ...published } = configOf('parley-speech');
  expect(model_type).toBe('kokoro');
  expect(modelTypeOf(published)).toBe('kokoro');
  expect(expectFamily(published, 'speech')).toBe('kokoro');
  expect(modelTypeOf({})).toBeUndefined();
  expect(modelTypeOf({ model_type: 5, istftnet: {} })).toBeUndefined();
});

test('a model of another task is refused with its task, and a type that is not known with those that are', () => {
  expect(() => decoderFor({ model_type: 'whisper' })).toThrow(
    expect.objectContaining({
      code: 'unsupported',
      message: 'config.json: a transcription model (model_type "whisper"), where a chat model is expected',
      details: { modelTask: 'transcription' },
    }),
  );
  expect(() => expectFamily({ model_type: 'llama' }, 'transcription')).toThrow(
    /a chat model \(model_type "llama"\), where a transcription model/,
  );
  expect(() => decoderFor({ model_type: 'bert' })).toThrow(
    'config.json: model_type "bert" is not a chat model this build knows: llama, mistral, mistral3, ministral3, qwen2, qwen3',
  );
  expect(() => expectFamily({ model_type: 'toString' }, 'chat')).toThrow(/"toString" is not a chat model/);
  expect(() => expectFamily({ model_type: 5 }, 'chat')).toThrow(/model_type 5 is not a chat model/);
});

test('every type of chat model has a definition', () => {
  for (const model_type of typesOf('chat')) expect(decoderFor({ model_type })).toHaveProperty('load');
});
