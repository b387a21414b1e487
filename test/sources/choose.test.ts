/** Which files of a repository are fetched: listings as they are published, and what is taken of them. */
import { expect, test } from 'vitest';
import { chooseFiles, expectModel } from '../../sources/index.ts';

const chosen = (names: string, select?: string): { readonly format: string; readonly main: string | undefined; readonly files: string } => {
  const { format, main, files } = chooseFiles(
    names.split(' ').map((path) => ({ path, size: 100, sha256: 'ab'.repeat(32) })),
    select,
  );
  return { format, main, files: files.map(({ path }) => path).join(' ') };
};

const LLAMA = 'config.json generation_config.json tokenizer.json tokenizer_config.json';
const GGUF = 'README.md m-Q2_K.gguf m-Q4_K_M.gguf m-Q4_K_S.gguf m-Q8_0.gguf mmproj-f16.gguf m.imatrix.gguf config.json';
/** As mradermacher names projectors, with few quantisations. */
const PROJECTORS = 'm.i1-IQ3_M.gguf m.i1-Q6_K.gguf m.mmproj-f16.gguf m.mmproj-Q8_0.gguf';
const SPLIT = 'BF16/m-BF16-00001-of-00002.gguf BF16/m-BF16-00002-of-00002.gguf m-UD-Q4_K_XL.gguf m-IQ4_XS.gguf';

test.each([
  [
    'a small model: its weights once',
    `${LLAMA} model.safetensors pytorch_model.bin model.onnx onnx/model.onnx README.md .gitattributes`,
    'config.json generation_config.json model.safetensors tokenizer.json tokenizer_config.json',
  ],
  [
    'shards with their index',
    'config.json model-00001-of-00002.safetensors model-00002-of-00002.safetensors model.safetensors.index.json consolidated.safetensors',
    'config.json model-00001-of-00002.safetensors model-00002-of-00002.safetensors model.safetensors.index.json',
  ],
  [
    'Whisper with its variants',
    'config.json merges.txt vocab.json normalizer.json preprocessor_config.json model.safetensors model.fp32.safetensors flax_model.msgpack',
    'config.json merges.txt model.safetensors normalizer.json preprocessor_config.json vocab.json',
  ],
  [
    'Whisper as transformers 5 writes it',
    'README.md config.json generation_config.json model.safetensors processor_config.json tokenizer.json tokenizer_config.json training_args.bin',
    'config.json generation_config.json model.safetensors processor_config.json tokenizer.json tokenizer_config.json',
  ],
  [
    'an old GPTQ repository',
    'config.json quantize_config.json gptq_model-4bit-128g.safetensors tokenizer.json adapter_model.safetensors',
    'config.json gptq_model-4bit-128g.safetensors quantize_config.json tokenizer.json',
  ],
  ['safetensors before GGUF', 'config.json model.safetensors m-Q4_K_M.gguf', 'config.json model.safetensors'],
])('%s', (_, names, files) => {
  expect(chosen(names)).toEqual({ format: 'safetensors', main: undefined, files });
});

test('an adapter is one only where there is no model', () => {
  const adapter = 'README.md adapter_config.json adapter_model.safetensors tokenizer.json tokenizer_config.json training_args.bin';
  expect(chosen(adapter)).toEqual({ format: 'lora', main: undefined, files: 'adapter_config.json adapter_model.safetensors' });
  expect(chosen(`${adapter} config.json model.safetensors`)).toMatchObject({ format: 'safetensors' });
  expect(() => expectModel('owner/sql', 'lora')).toThrow('owner/sql is a LoRA adapter and no model; it goes with its base model, on a server: --lora NAME=owner/sql'); // prettier-ignore
  expect(() => expectModel('owner/model', 'safetensors')).not.toThrow();
});

test.each([
  [GGUF, undefined, 'm-Q4_K_M.gguf'],
  [GGUF, 'q8_0', 'm-Q8_0.gguf'],
  [GGUF, 'Q4_K_S', 'm-Q4_K_S.gguf'],
  [GGUF, 'm-Q2_K.gguf', 'm-Q2_K.gguf'],
  ['m-Q8_0.gguf m-Q5_0.gguf', undefined, 'm-Q8_0.gguf'],
  ['m.gguf', undefined, 'm.gguf'],
  [PROJECTORS, undefined, 'm.i1-Q6_K.gguf'],
  ['m-UD-IQ1_S.gguf m-IQ2_XXS.gguf m-TQ1_0.gguf m-Q3_K_S.gguf', undefined, 'm-Q3_K_S.gguf'],
  ['m-UD-IQ1_S.gguf m-UD-IQ2_XXS.gguf m-UD-TQ1_0.gguf', undefined, 'm-UD-IQ2_XXS.gguf'],
  ['m-IQ3_XXS.gguf m-Q6_K.gguf m-IQ4_XS.gguf', undefined, 'm-IQ4_XS.gguf'],
  ['m.gguf m-IQ2_S.gguf', undefined, 'm.gguf'],
  ['m-Q1_0.gguf m-Q2_0.gguf m-TQ2_0.gguf', undefined, 'm-TQ2_0.gguf'],
  ['m-Q4_K_M.gguf m-UD-IQ3_XXS.gguf m-IQ3_XXS.gguf', 'IQ3_XXS', 'm-IQ3_XXS.gguf'],
  ['m-Q4_K_M.gguf m-UD-IQ2_M.gguf', 'IQ2_M', 'm-UD-IQ2_M.gguf'],
  ['m-IQ3_M.gguf', undefined, 'm-IQ3_M.gguf'],
  [PROJECTORS, 'Q6_K', 'm.i1-Q6_K.gguf'],
  [PROJECTORS, 'm.mmproj-f16.gguf', 'm.mmproj-f16.gguf'],
  [SPLIT, 'UD-Q4_K_XL', 'm-UD-Q4_K_XL.gguf'],
  [SPLIT, 'IQ4_XS', 'm-IQ4_XS.gguf'],
])('one GGUF file of %s for %s', (names, select, file) => {
  expect(chosen(names, select)).toEqual({ format: 'gguf', main: file, files: file });
});

test('a shard that is named stands for all, with the index by which they are read', () => {
  const files = 'config.json model-00001-of-00002.safetensors model-00002-of-00002.safetensors model.safetensors.index.json';
  expect(chosen(files, 'model-00001-of-00002.safetensors').files).toBe(files);
});

test('a split GGUF is all of its parts, the first of which stands for it', () => {
  const files = 'BF16/m-BF16-00001-of-00002.gguf BF16/m-BF16-00002-of-00002.gguf';
  for (const select of ['BF16', 'm-BF16-00001-of-00002.gguf', 'BF16/m-BF16-00002-of-00002.gguf']) {
    expect(chosen(SPLIT, select)).toEqual({ format: 'gguf', main: 'BF16/m-BF16-00001-of-00002.gguf', files });
  }
  expect(() => chosen(files.split(' ')[0]!, 'BF16')).toThrow('lacks part 2 of 2');
});

test("faster-whisper's files", () => {
  expect(chosen('README.md config.json model.bin tokenizer.json vocabulary.txt')).toEqual({
    format: 'ctranslate2',
    main: undefined,
    files: 'config.json model.bin tokenizer.json vocabulary.txt',
  });
});

test("Kokoro's: its own, and the ONNX exports", () => {
  const voices = 'voices/af_heart.pt voices/am_adam.pt';
  expect(chosen(`config.json kokoro-v1_0.pth ${voices} samples/HEARME.wav eval/x.png`)).toMatchObject({
    format: 'pytorch',
    files: `config.json kokoro-v1_0.pth ${voices}`,
  });
  const onnx = 'config.json onnx/model.onnx onnx/model_q8f16.onnx onnx/model_quantized.onnx tokenizer.json voices/af.bin';
  expect(chosen(onnx)).toEqual({ format: 'onnx', main: undefined, files: 'config.json onnx/model.onnx tokenizer.json voices/af.bin' });
  expect(chosen(onnx, 'q8f16')).toEqual({
    format: 'onnx',
    main: 'onnx/model_q8f16.onnx',
    files: 'config.json onnx/model_q8f16.onnx tokenizer.json voices/af.bin',
  });
});

test('what cannot be chosen is said, with what there is', () => {
  expect(() => chosen('config.json pytorch_model.bin')).toThrow(/has no weights that are read here; pytorch_model.bin holds pickled/);
  expect(() => chosen('README.md')).toThrow(/^has no weights that are read here$/);
  expect(() => chosen(GGUF, 'Q6_K')).toThrow(
    'has no file and no quantisation "Q6_K"; there are m-Q2_K.gguf, m-Q4_K_M.gguf, m-Q4_K_S.gguf, m-Q8_0.gguf',
  );
  expect(() => chosen(GGUF, 'README.md')).toThrow('"README.md" is no file of weights');
  expect(() => chosen('model-00001-of-00003.safetensors model-00003-of-00003.safetensors model.safetensors.index.json')).toThrow(
    'lacks part 2 of 3',
  );
});

test('a projector is no quantisation of its model', () => {
  expect(() => chosen(PROJECTORS, 'f16')).toThrow('has no file and no quantisation "f16"; there are m.i1-IQ3_M.gguf, m.i1-Q6_K.gguf');
});
