/** What stands where a checkpoint is expected: each thing is named as what it is, with what to do. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { floatStorage } from '../../engine/config.ts';
import { EngineError, namingModel } from '../../engine/errors.ts';
import type { Device } from '../../engine/gpu/device.ts';
import { WeightLoader } from '../../engine/models/weight-loader.ts';
import { createNodePlatform } from '../../engine/platform/node.ts';
import { ChatTemplate } from '../../engine/text/chat-template.ts';
import { Tokenizer } from '../../engine/text/tokenizer.ts';
import type { Json } from '../../engine/util/json.ts';
import { finite, missingTensor } from '../../engine/weights/checkpoint.ts';
import { checkpointBytes } from '../../engine/weights/storage.ts';
import type { Checkpoint } from '../../engine/weights/checkpoint.ts';
import { huggingFaceFolder } from '../../engine/weights/hugging-face-folder.ts';
import { withWeights } from '../../engine/weights/model-folder.ts';
import type { ModelFolder } from '../../engine/weights/model-folder.ts';
import { openModelFolder } from '../../engine/weights/open-model-folder.ts';
import { openSafetensors } from '../../engine/weights/safetensors.ts';
import { writeNumberTokenizer } from '../support/random-checkpoint.ts';

const platform = createNodePlatform();

/** A folder whose files are what a test looks at, with or without a config.json. */
const at = (path: string): ModelFolder => huggingFaceFolder({ platform, path, id: 'model' });

const readConfig = async (path: string): Promise<unknown> => (await openModelFolder(platform, path)).json('config.json');

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

/** What git leaves of a large file that it did not fetch. */
const LFS_POINTER = 'version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n';

test.each([
  ['tiny.Q4_1.gguf', 'GGUF\x03', /is not a GGUF file that can be read: it ends within its header, at byte 5/],
  ['weights', 'GGUF\x03', /is not a GGUF file that can be read/],
  [
    'model.onnx',
    '\x08\x07',
    /is an ONNX model, which is not read \(but for Kokoro with its voices beside it\); take the repository it was made from/,
  ],
  [
    'kokoro-v1_0.pth',
    'PK\x03\x04',
    /pickled PyTorch weights.*unpickling can run code \(but for Kokoro with its voices beside it\); write them as safetensors/,
  ],
  ['weights.bin', 'xx', /weights in a format that is not read/],
  ['model.safetensors', '\x08\0\0\0\0\0\0\0', /is a single file; give the folder that holds it/],
  ['page.gguf', '<!DOCTYPE html>', /page.gguf is named like a GGUF file and is none: it does not begin with "GGUF"; fetch it again$/],
  ['lfs.gguf', LFS_POINTER, /lfs.gguf is a pointer of Git LFS, not the file itself; fetch that with 'git lfs pull'$/],
  ['notes.txt', 'hello', /is no folder; a checkpoint is a folder with config.json/],
])('the file %s is named', async (name, text, message) => {
  const path = folder({ [name]: text });
  expect(await refusal(openModelFolder(platform, join(path, name)))).toMatch(message);
  // A folder with one GGUF file is that file.
  expect(await refusal(readConfig(path))).toMatch(name.endsWith('.gguf') ? message : /file not found: .*config.json/);
});

test.each([
  [{ 'tiny.gguf': 'GGUF', 'small.gguf': 'GGUF' }, /config.json; (tiny|small).gguf is a GGUF file; give the file itself/],
  [{ 'mmproj-F16.gguf': 'GGUF' }, /config.json; mmproj-F16.gguf belongs to a language model and is none .*; give the model's own file$/],
  [
    { 'm.mmproj-f16.gguf': 'GGUF' },
    /config.json; m.mmproj-f16.gguf belongs to a language model and is none .*; give the model's own file$/,
  ],
  [{ 'model.onnx': '' }, /model.onnx is an ONNX model/],
  [{ 'pytorch_model.bin': '' }, /pytorch_model.bin holds pickled PyTorch weights/],
])('a folder without config.json, but with %o', async (files, message) => {
  expect(await refusal(readConfig(folder(files)))).toMatch(message);
});

test('an empty folder is said to be empty', async () => {
  const path = folder({});
  expect(await refusal(openModelFolder(platform, path))).toBe(
    `${path} is an empty folder; expected in it: config.json, model.safetensors and, of a chat model, tokenizer.json, or a GGUF file in their place`,
  );
  // Of a part of a model that is nothing but weights.
  expect(await refusal(openSafetensors(platform, path))).toBe(`${path} is an empty folder; expected in it: model.safetensors`);
});

test.each(['config.json: x is 1', 'models/part/model.safetensors: x is 1'])(
  'a refusal of a part of a model names the part: %s',
  async (message) => {
    const part = namingModel('models/part', Promise.reject(new EngineError('invalid_model', message)));
    const refused = await refusal(namingModel('models/whole', part));
    expect(refused).toMatch(/^models\/part\b/);
    expect(refused).not.toMatch('models/whole');
  },
);

test('a folder without safetensors says what it has instead', async () => {
  expect(await refusal(at(folder({ 'config.json': '{}', 'model.bin': '' })).weights())).toMatch(
    /file not found: .*model.safetensors; model.bin holds weights in a format that is not read/,
  );
});

test('a GGUF file where only safetensors are read is told what it is read as, not to be given once more', async () => {
  const path = join(folder({ 'model.Q4_1.gguf': 'GGUF\x03' }), 'model.Q4_1.gguf');
  expect(await refusal(at(path).weights())).toBe(`${path} is a GGUF file, which is read as a chat model only`);
});

test('a hub id is known as one, another path is not', async () => {
  expect(await refusal(readConfig('Qwen/Qwen3-0.6B'))).toBe(
    'no such folder: Qwen/Qwen3-0.6B; it looks like a model of the Hugging Face hub; the engine fetches nothing, so give the folder that it was fetched to',
  );
  expect(await refusal(readConfig('/nowhere/at/all'))).toBe('no such folder: /nowhere/at/all');
});

test.each([
  ['hqq', 'HQQ'],
  ['aqlm', 'AQLM'],
  ['something', '"something"'],
])('weights quantised with %s are refused before they are read', async (method, name) => {
  const path = folder({ 'config.json': JSON.stringify({ quantization_config: { quant_method: method } }) });
  expect(await refusal(readConfig(path))).toMatch(
    `the weights are quantised with ${name}, which is not read; take the model they were made from`,
  );
});

test('infinity, as Python writes it, is read as transformers 5 writes it', async () => {
  const written = '{"time_step_limit": [0.0, Infinity], "a": [-Infinity, NaN], "b": "\\", Infinity, NaN", "Infinity": 1}';
  const infinite = (text: string): unknown => ({ __float__: text });
  expect(await at(folder({ 'config.json': written })).json('config.json')).toEqual({
    time_step_limit: [0, infinite('Infinity')],
    a: [infinite('-Infinity'), infinite('NaN')],
    b: '", Infinity, NaN',
    Infinity: 1,
  });
});

test('config.json is a JSON object of bounded size', async () => {
  expect(await refusal(readConfig(folder({ 'config.json': 'null' })))).toMatch(/config.json holds null, expected a JSON object/);
  expect(await refusal(readConfig(folder({ 'config.json': '[1]' })))).toMatch(/holds a list of 1/);
  expect(await refusal(readConfig(folder({ 'config.json': '{"a": }' })))).toMatch(/config.json is not JSON$/);
  expect(await refusal(readConfig(folder({ 'config.json': '{"a": Infinit, "b": NaN}' })))).toMatch(/config.json is not JSON/);
  expect(await refusal(readConfig(folder({ 'config.json': '['.repeat(1000) })))).toMatch(/nests JSON deeper than 64 levels/);
  const path = folder({});
  mkdirSync(join(path, 'config.json'));
  expect(await refusal(readConfig(path))).toMatch(/a folder stands where a file is expected: .*config.json/);
  expect(await at(folder({})).json('none.json', { optional: true })).toEqual({});
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
  expect(await refusal(Tokenizer.load(at(folder({ 'tokenizer.json': json }))))).toMatch(message);
});

test('pieces that would take all memory are refused', async () => {
  const json = JSON.stringify({ model: { type: 'Unigram', unk_id: 0, vocab: [['x'.repeat(5_000_000), 0]] } });
  expect(await refusal(Tokenizer.load(at(folder({ 'tokenizer.json': json }))))).toMatch(
    /tokenizer.json: model.vocab has pieces of 5000000 characters in all; at most 4194304 are read/,
  );
});

test("a text's tokens are checked against the model's", async () => {
  const path = folder({});
  writeNumberTokenizer(path, 20);
  expect(await refusal(Tokenizer.load(at(path), 19))).toMatch(
    /has a token with id 19, but the model has 19 tokens; they do not belong together/,
  );
  const json = await at(path).json('tokenizer.json');
  const added = [{ id: 25, content: '<far>', special: true, single_word: false, lstrip: false, rstrip: false, normalized: false }];
  writeFileSync(join(path, 'tokenizer.json'), JSON.stringify({ ...json, added_tokens: added }));
  const tokenizer = await Tokenizer.load(at(path), 20);
  expect(tokenizer.encode('3 4')).toEqual([3, 4]);
  expect(() => tokenizer.encode('3 <far> 4')).toThrow('the text spells the token "<far>" (id 25); this model has tokens 0 to 19');
});

test('tokens that tokenizer_config.json does not name are those of special_tokens_map.json', async () => {
  const map = { bos_token: '<1>', eos_token: { content: '<2>', lstrip: false } };
  const path = folder({ 'special_tokens_map.json': JSON.stringify(map) });
  writeNumberTokenizer(path, 20);
  const rendered = async (config: Json): Promise<string> => {
    writeFileSync(join(path, 'tokenizer_config.json'), JSON.stringify({ ...config, chat_template: '{{ bos_token }}|{{ eos_token }}' }));
    return (await ChatTemplate.load(at(path), await Tokenizer.load(at(path)))).render([{ role: 'user', content: 'Hi' }]);
  };
  expect(await rendered({})).toBe('<1>|<2>');
  expect(await rendered({ bos_token: null, eos_token: '<3>' })).toBe('|<3>');
  expect(await rendered({ eos_token: '<3>' })).toBe('<1>|<3>');
});

test("a tokenizer without a template takes that of the model's processor", async () => {
  const path = folder({ 'chat_template.json': JSON.stringify({ chat_template: 'processor' }) });
  writeNumberTokenizer(path, 20);
  const rendered = async (): Promise<string> =>
    (await ChatTemplate.load(at(path), await Tokenizer.load(at(path)))).render([{ role: 'user', content: 'Hi' }]);
  expect(await rendered()).toBe('processor');
  writeFileSync(join(path, 'tokenizer_config.json'), JSON.stringify({ chat_template: 'tokenizer' }));
  expect(await rendered()).toBe('tokenizer');
  writeFileSync(join(path, 'chat_template.jinja'), 'file');
  expect(await rendered()).toBe('file');
});

test('what no piece of a Unigram model spells is spelled by tokens of bytes, where it has them', async () => {
  const spelled = ['<unk>', '▁', '▁ab', 'c'].map((piece, id) => [piece, -id]);
  const bytes = Array.from({ length: 256 }, (_, byte) => [`<0x${byte.toString(16).toUpperCase().padStart(2, '0')}>`, -20]);
  const idsOf = async (vocab: readonly unknown[], byte_fallback: boolean): Promise<number[]> => {
    const model = { type: 'Unigram', unk_id: 0, vocab, byte_fallback };
    const parts = { added_tokens: [], normalizer: null, pre_tokenizer: { type: 'Metaspace', replacement: '▁', prepend_scheme: 'always', split: true } }; // prettier-ignore
    const json = JSON.stringify({ ...parts, post_processor: null, decoder: { type: 'Fuse' }, model });
    return (await Tokenizer.load(at(folder({ 'tokenizer.json': json })))).encode('ab éxc');
  };
  // As PyPI `tokenizers` has it.
  expect(await idsOf([...spelled, ...bytes], true)).toEqual([2, 1, 4 + 0xc3, 4 + 0xa9, 4 + 0x78, 3]);
  expect(await idsOf([...spelled, ...bytes], false)).toEqual([2, 1, 0, 3]);
  expect(await idsOf(spelled, true)).toEqual([2, 1, 0, 3]);
});

describe('what tokenizer.json has for the pieces of a text', () => {
  const load = async (files: Readonly<Record<string, unknown>>): Promise<Tokenizer> => {
    const json = { added_tokens: [], normalizer: null, pre_tokenizer: null, post_processor: null, decoder: null, ...files };
    return Tokenizer.load(at(folder({ 'tokenizer.json': JSON.stringify(json) })));
  };

  const BYTE_LEVEL = { type: 'ByteLevel', add_prefix_space: false, trim_offsets: true, use_regex: true };
  const DIGITS = { type: 'Digits', individual_digits: true };
  const LINES = { type: 'Split', pattern: { Regex: String.raw`\s+$` }, behavior: 'Isolated', invert: false };
  const BYTES = { ...BYTE_LEVEL, use_regex: false };
  // As PyPI `tokenizers` has it. The bytes of U+00BD are spelled "Â½", those of U+0085 "Âħ", those of U+FEFF "ï»¿".
  test.each([
    ['Digits', [DIGITS, BYTE_LEVEL], ' ½', ['Ġ', 'Â½']],
    ['Digits', [{ ...DIGITS, individual_digits: false }, BYTE_LEVEL], '½ ½', ['Â½', 'Ġ', 'Â½']],
    ['Punctuation', [{ type: 'Punctuation', behavior: 'Isolated' }, BYTES], '!!½', ['!', '!', 'Â½']],
    ['Punctuation', [{ type: 'Punctuation' }, BYTES], '!!½', ['!', '!', 'Â½']],
    ['Punctuation', [{ type: 'Punctuation', behavior: 'Contiguous' }, BYTES], '!!½', ['!!', 'Â½']],
    ['ByteLevel', [BYTE_LEVEL], ' \ufeff', ['Ġï»¿']],
    ['ByteLevel', [BYTE_LEVEL], '!\u0085', ['!', 'Âħ']],
    ['Split', [LINES, BYTES], '  ½  ', ['ĠĠÂ½', 'ĠĠ']],
  ])('%s: %j cuts %j', async (_, pretokenizers, text, expected) => {
    const pieces = ['!', 'Ġ', 'Â', '½', 'ħ', 'ï', '»', '¿', '!!', 'ĠĠ', 'Â½', 'Âħ', 'ï»', 'ï»¿', 'ĠÂ½', 'ĠĠÂ½', 'Ġï»¿', '!Âħ'];
    const merges = ['! !', 'Ġ Ġ', 'Â ½', 'Â ħ', 'ï »', 'ï» ¿', 'ĠĠ Â½', 'Ġ Â½', 'Ġ ï»¿', '! Âħ'];
    const model = { type: 'BPE', vocab: Object.fromEntries(pieces.map((piece, id) => [piece, id])), merges };
    const tokenizer = await load({ model, pre_tokenizer: { type: 'Sequence', pretokenizers }, decoder: BYTE_LEVEL });
    expect(tokenizer.encode(text).map((id) => pieces[id])).toEqual(expected);
    expect(tokenizer.decode(tokenizer.encode(text))).toBe(text);
  });

  // Looked for anew at each space, it would take longer than a test may.
  test('white space at the ends of lines is found in one go', async () => {
    const model = { type: 'BPE', vocab: { Ġ: 0, '1': 1 }, merges: [] };
    const tokenizer = await load({ model, pre_tokenizer: { type: 'Sequence', pretokenizers: [LINES, BYTES] } });
    expect(tokenizer.encode(`${' '.repeat(600_000)}1`).length).toBe(600_001);
  });

  test("the bytes of added tokens are those of their text: Gemma's runs of spaces are some", async () => {
    const unmark = { type: 'Replace', pattern: { String: '▁' }, content: ' ' };
    const tokenizer = await load({
      added_tokens: [{ id: 1, content: '▁▁', normalized: false, special: false }],
      decoder: { type: 'Sequence', decoders: [unmark, { type: 'ByteFallback' }, { type: 'Fuse' }] },
      model: { type: 'BPE', vocab: { '▁': 0, '▁▁': 1, a: 2 }, merges: [['▁', '▁']], byte_fallback: true },
    });
    expect(tokenizer.decode([2, 1, 2])).toBe('a  a');
    expect([...tokenizer.bytes(1)]).toEqual([0x20, 0x20]);
  });
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
  const tokenizer = await Tokenizer.load(at(path));
  expect(await refusal(ChatTemplate.load(at(path), tokenizer))).toMatch(message);
});

/** A model that lies in no folder: its files are made up, and its weights are numbers. */
function madeUp(files: Readonly<Record<string, Json>>, tensors: Readonly<Record<string, Float32Array>>, closed: () => void): ModelFolder {
  const checkpoint: Checkpoint = {
    names: () => Object.keys(tensors),
    tensor: (name) =>
      tensors[name] && { dtype: 'made up', shape: name.endsWith('weight') ? [2, tensors[name].length / 2] : [tensors[name].length] },
    read: async (name, { from, to } = { from: 0, to: Infinity }) => finite(tensors[name]!.subarray(from, to), 'numbers', name, from),
    readIds: async (name) => Promise.reject(missingTensor(name)),
    close: async () => closed(),
  };
  return {
    id: 'made-up',
    path: 'nowhere',
    where: (name) => `nowhere: ${name}`,
    has: async (name) => name in files,
    json: async (name) => files[name] ?? {},
    text: async (name) => JSON.stringify(files[name]),
    weights: async () => checkpoint,
  };
}

test('what is above needs no file: a model that is made up has tokens, a template and weights', async () => {
  const path = folder({});
  writeNumberTokenizer(path, 20);
  const closed = vi.fn();
  const tokens = await at(path).json('tokenizer.json');
  const model = madeUp(
    { 'tokenizer.json': tokens, 'tokenizer_config.json': { chat_template: '{{ messages[0].content }} 5' } },
    { 'a.weight': Float32Array.of(1, 2, 3, 4), 'a.bias': Float32Array.of(5, NaN) },
    closed,
  );
  const tokenizer = await Tokenizer.load(model, 20);
  const template = await ChatTemplate.load(model, tokenizer);
  expect(tokenizer.encode(template.render([{ role: 'user', content: '3 4' }]))).toEqual([3, 4, 5]);
  expect(await refusal(Tokenizer.load(model, 19))).toMatch(/^nowhere: tokenizer.json has a token with id 19/);
  const loading = withWeights(model, async (checkpoint) => {
    expect([checkpointBytes(checkpoint, floatStorage('f32')), checkpointBytes(checkpoint, floatStorage('f16'))]).toEqual([24, 16]);
    const loader = new WeightLoader(undefined as unknown as Device, checkpoint, floatStorage('f32'));
    expect([...(await loader.data('a.weight', [2, 2], { columns: { from: 1, to: 2 } }))]).toEqual([2, 4]);
    expect(() => loader.shape('b')).toThrow('tensor b is missing in the checkpoint');
    expect(closed).not.toHaveBeenCalled();
    await loader.data('a.bias', [2]);
  });
  expect(await refusal(loading)).toBe('numbers: tensor a.bias holds NaN at element 1, expected finite values');
  expect(closed).toHaveBeenCalledOnce();
});

test('a model is served by the last name of its path, unless it is given another', async () => {
  const path = folder({ 'config.json': '{}' });
  expect(await openModelFolder(platform, `${path}//`)).toMatchObject({ id: basename(path) });
  expect(await openModelFolder(platform, path, 'mine')).toMatchObject({ id: 'mine', path });
});
