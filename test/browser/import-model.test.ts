/** A picked folder before its model is loaded, without a browser: what it is instead of a checkpoint is said in the engine's words. */
import { expect, test } from 'vitest';
import { describeFolder, describeGguf } from '../../web/src/models/import-model.ts';

function picked(files: Record<string, string>): File[] {
  return Object.entries(files).map(([name, text]) => Object.assign(new File([text], name), { webkitRelativePath: `mine/${name}` }));
}

const LLAMA = '{"model_type":"llama"}';

test('a checkpoint is described', async () => {
  const { manifest, blobs } = await describeFolder(picked({ 'config.json': LLAMA, 'model.safetensors': 'x', 'picture.png': 'x' }));
  expect(manifest).toMatchObject({ id: 'local/mine', task: 'chat', modelType: 'llama', source: 'local' });
  expect([...blobs.keys()]).toEqual(['config.json', 'model.safetensors']);
});

test.each([
  [{ 'tiny.gguf': 'GGUF' }, /^tiny.gguf is a GGUF file; give the file itself/],
  [{ 'picture.png': 'x' }, /^this folder has no config.json/],
  [{ 'config.json': LLAMA, 'model.pth': 'PK' }, /^model.pth holds pickled PyTorch weights/],
  [{ 'config.json': LLAMA, 'model.onnx': 'x' }, /^model.onnx is an ONNX model/],
  [{ 'config.json': LLAMA }, /^this folder has no .safetensors file/],
  [{ 'config.json': 'null', 'model.safetensors': 'x' }, /^config.json holds null, expected a JSON object/],
  [{ 'config.json': '{', 'model.safetensors': 'x' }, /^config.json is not JSON/],
  [{ 'config.json': '{"model_type":5}', 'model.safetensors': 'x' }, /^config.json says model_type \(nothing\); known are/],
  [{ 'config.json': '{"quantization_config":{"quant_method":"awq"}}', 'model.safetensors': 'x' }, /^the weights are quantised with AWQ/],
])('%o is refused', async (files, message) => {
  await expect(describeFolder(picked(files as Record<string, string>))).rejects.toThrow(message);
});

test('a GGUF file is a chat model, and so are the parts of one', async () => {
  const { manifest, blobs } = await describeGguf(picked({ 'Tiny-Q8_0.gguf': 'GGUF..' }));
  expect(manifest).toMatchObject({ id: 'local/Tiny', task: 'chat', modelType: 'GGUF', source: 'local' });
  expect([...blobs.keys()]).toEqual(['Tiny-Q8_0.gguf']);
  const parts = await describeGguf(picked({ 'Big-00002-of-00002.gguf': 'GGUF', 'Big-00001-of-00002.gguf': 'GGUF' }));
  expect(parts.manifest.files.map(({ name }) => name)).toEqual(['Big-00001-of-00002.gguf', 'Big-00002-of-00002.gguf']);
});

test.each([
  [{}, /no file was picked/],
  [{ 'a.gguf': 'PK' }, /^a.gguf is no GGUF file/],
  [{ 'a.bin': 'GGUF' }, /^a.bin is no GGUF file/],
  [{ 'a.gguf': 'GGUF', 'b.gguf': 'GGUF' }, /^a.gguf, b.gguf: open one model, which is one file/],
  [{ 'a-00001-of-00002.gguf': 'GGUF' }, /open one model, all its 2 parts/],
])('%o is refused as a GGUF file', async (files, message) => {
  await expect(describeGguf(picked(files as Record<string, string>))).rejects.toThrow(message);
});
