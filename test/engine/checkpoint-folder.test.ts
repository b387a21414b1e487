/** What stands where a checkpoint is expected: each thing is named as what it is, with what to do. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { readJsonFile } from '../../engine/platform/json-file.ts';
import { createNodePlatform } from '../../engine/platform/node.ts';
import { ChatTemplate } from '../../engine/text/chat-template.ts';
import { Tokenizer } from '../../engine/text/tokenizer.ts';
import { readConfig } from '../../engine/weights/checkpoint-folder.ts';
import { Checkpoint } from '../../engine/weights/safetensors.ts';
import { writeNumberTokenizer } from '../support/random-checkpoint.ts';

const platform = createNodePlatform();

function folder(files: Record<string, string>): string {
  const path = mkdtempSync(join(tmpdir(), 'parley-'));
  onTestFinished(() => rmSync(path, { recursive: true }));
  for (const [name, text] of Object.entries(files)) writeFileSync(join(path, name), text);
  return path;
}

async function refusal(promise: Promise<unknown>): Promise<string> {
  const error: unknown = await promise.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  expect(error).toMatchObject({ name: 'EngineError', code: 'invalid_model' });
  const { message } = error as Error;
  expect(message).not.toMatch(/\n|TypeError|Cannot read/);
  return message;
}

test.each([
  ['tiny.Q4_1.gguf', 'GGUF\x03', /is a GGUF file, which this version does not read; take the repository .*gguf_file=name/],
  ['weights', 'GGUF\x03', /is a GGUF file/],
  ['model.onnx', '\x08\x07', /is an ONNX model, which is not read; take the repository it was made from/],
  ['kokoro-v1_0.pth', 'PK\x03\x04', /pickled PyTorch weights.*unpickling can run code; write them as safetensors/],
  ['weights.bin', 'xx', /weights in a format that is not read/],
  ['model.safetensors', '\x08\0\0\0\0\0\0\0', /is a single file; give the folder that holds it/],
  ['notes.txt', 'hello', /is no folder; a checkpoint is a folder with config.json/],
])('the file %s is named', async (name, text, message) => {
  const path = folder({ [name]: text });
  expect(await refusal(readConfig(platform, join(path, name)))).toMatch(message);
  expect(await refusal(readConfig(platform, path))).toMatch(/file not found: .*config.json/);
});

test.each([
  [{ 'tiny.gguf': 'GGUF' }, /config.json; tiny.gguf is a GGUF file/],
  [{ 'model.onnx': '' }, /model.onnx is an ONNX model/],
  [{ 'pytorch_model.bin': '' }, /pytorch_model.bin holds pickled PyTorch weights/],
])('a folder without config.json, but with %o', async (files, message) => {
  expect(await refusal(readConfig(platform, folder(files)))).toMatch(message);
});

test('a folder without safetensors says what it has instead', async () => {
  expect(await refusal(Checkpoint.open(platform, folder({ 'config.json': '{}', 'model.bin': '' })))).toMatch(
    /file not found: .*model.safetensors; model.bin holds weights in a format that is not read/,
  );
});

test('a hub id is known as one, another path is not', async () => {
  expect(await refusal(readConfig(platform, 'Qwen/Qwen3-0.6B'))).toBe(
    "no such folder: Qwen/Qwen3-0.6B; it looks like a model of the Hugging Face hub: 'npx parley pull Qwen/Qwen3-0.6B' fetches it and prints the folder to give here",
  );
  expect(await refusal(readConfig(platform, '/nowhere/at/all'))).toBe('no such folder: /nowhere/at/all');
});

test.each([
  ['gptq', 'GPTQ'],
  ['awq', 'AWQ'],
  ['fp8', 'FP8'],
  ['something', '"something"'],
])('weights quantised with %s are refused before they are read', async (method, name) => {
  const path = folder({ 'config.json': JSON.stringify({ quantization_config: { quant_method: method } }) });
  expect(await refusal(readConfig(platform, path))).toMatch(
    `the weights are quantised with ${name}, which is not read; take the model they were made from`,
  );
});

test('config.json is a JSON object of bounded size', async () => {
  expect(await refusal(readConfig(platform, folder({ 'config.json': 'null' })))).toMatch(/config.json holds null, expected a JSON object/);
  expect(await refusal(readConfig(platform, folder({ 'config.json': '[1]' })))).toMatch(/holds a list of 1/);
  expect(await refusal(readConfig(platform, folder({ 'config.json': '{"a": }' })))).toMatch(/config.json is not JSON$/);
  expect(await refusal(readConfig(platform, folder({ 'config.json': '['.repeat(1000) })))).toMatch(/nests JSON deeper than 64 levels/);
  const path = folder({});
  mkdirSync(join(path, 'config.json'));
  expect(await refusal(readConfig(platform, path))).toMatch(/a folder stands where a file is expected: .*config.json/);
  expect(await readJsonFile(platform, join(folder({}), 'none.json'), { optional: true })).toEqual({});
});

test.each([
  ['null', /tokenizer.json holds null/],
  ['{}', /model is undefined, expected an object/],
  ['{"model":{"vocab":{"a":"b"}}}', /model.vocab is an object, expected tokens with ids/],
  ['{"model":{"vocab":{"a":4000000000}}}', /model.vocab is an object, expected tokens with ids below/],
  ['{"model":{"vocab":{}},"added_tokens":[null]}', /added_tokens must be a list of/],
  ['{"model":{"vocab":{}},"added_tokens":[{"id":-1,"content":"x"}]}', /added_tokens must be a list of/],
  ['{"model":{"type":"Nothing","vocab":{}}}', /tokenizer.json is no tokenizer that can be used \(/],
])('tokenizer.json %s', async (json, message) => {
  expect(await refusal(Tokenizer.load(platform, folder({ 'tokenizer.json': json })))).toMatch(message);
});

test("a text's tokens are checked against the model's", async () => {
  const path = folder({});
  writeNumberTokenizer(path, 20);
  expect(await refusal(Tokenizer.load(platform, path, 19))).toMatch(
    /has a token with id 19, but the model has 19 tokens; they do not belong together/,
  );
  const json = (await readJsonFile(platform, join(path, 'tokenizer.json'))) as object;
  const added = [{ id: 25, content: '<far>', special: true, single_word: false, lstrip: false, rstrip: false, normalized: false }];
  writeFileSync(join(path, 'tokenizer.json'), JSON.stringify({ ...json, added_tokens: added }));
  const tokenizer = await Tokenizer.load(platform, path, 20);
  expect(tokenizer.encode('3 4')).toEqual([3, 4]);
  expect(() => tokenizer.encode('3 <far> 4')).toThrow('the text spells the token "<far>" (id 25); this model has tokens 0 to 19');
});

test.each([
  ['5', /chat_template is 5, expected a text/],
  ['[]', /chat_template is a list of 0/],
  ['[{"name":"default","template":{}}]', /chat_template is a list of 1/],
  [
    '"{% for i in range(10**9) %}x{% endfor %}"',
    /the chat template cannot be used: for one short message it takes more than 1000000 steps/,
  ],
])('chat_template %s', async (template, message) => {
  const path = folder({});
  writeNumberTokenizer(path, 20);
  writeFileSync(join(path, 'tokenizer_config.json'), `{"chat_template":${template}}`);
  const tokenizer = await Tokenizer.load(platform, path);
  expect(await refusal(ChatTemplate.load(platform, path, tokenizer))).toMatch(message);
});
