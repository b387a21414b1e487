/** GPT-2's tokenizer from vocab.json and merges.txt: the tokens of transformers (test/tools/dump_gpt2_tokenizer.py). */
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, onTestFinished, test } from 'vitest';
import { createNodePlatform } from '../../engine/platform/node.ts';
import { Tokenizer } from '../../engine/text/tokenizer.ts';
import type { Json } from '../../engine/util/json.ts';
import { huggingFaceFolder } from '../../engine/weights/hugging-face-folder.ts';

const FIXTURE = fileURLToPath(new URL('../fixtures/gpt2-tokenizer', import.meta.url));
const platform = createNodePlatform({ log: () => undefined });

interface Golden {
  readonly texts: readonly string[];
  readonly cases: Readonly<
    Record<string, { readonly files: Json; readonly ids: readonly number[][]; readonly decoded: readonly string[] }>
  >;
}
const { texts, cases } = JSON.parse(readFileSync(join(FIXTURE, 'golden.json'), 'utf8')) as Golden;

/** A folder of the fixture's files and others. */
function folderWith(files: Json): string {
  const folder = mkdtempSync(join(tmpdir(), 'parley-tokenizer-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  for (const name of ['vocab.json', 'merges.txt']) cpSync(join(FIXTURE, name), join(folder, name));
  for (const [name, content] of Object.entries(files)) writeFileSync(join(folder, name), typeof content === 'string' ? content : JSON.stringify(content)); // prettier-ignore
  return folder;
}
const load = (path: string): Promise<Tokenizer> => Tokenizer.load(huggingFaceFolder({ platform, path, id: 'tiny' }));

test.each(Object.entries(cases))('%s: texts have the tokens of transformers, and tokens its texts', async (_, { files, ids, decoded }) => {
  const tokenizer = await load(folderWith(files));
  expect(texts.map((text) => tokenizer.encode(text, { addSpecialTokens: true }))).toEqual(ids);
  expect(ids.map((each) => tokenizer.decode(each))).toEqual(decoded);
});

test('is not taken for the tokenizers of others, which have files of these names too', async () => {
  const missing = /tokenizer\.json/;
  for (const tokenizer_class of ['Qwen2Tokenizer', 'CLIPTokenizer'])
    await expect(load(folderWith({ 'config.json': { model_type: 'gpt2' }, 'tokenizer_config.json': { tokenizer_class } }))).rejects.toThrow(missing); // prettier-ignore
  await expect(load(folderWith({ 'config.json': { model_type: 'whisper' } }))).rejects.toThrow(missing);
});

test.each([
  [
    'a line of three parts',
    { 'merges.txt': '#version: 0.2\na b\na b c\n' },
    /merges\.txt has the line "a b c", expected two parts of a token/,
  ],
  ['a vocabulary that is none', { 'vocab.json': '{"a": "b"}' }, /model\.vocab is .*, expected tokens with ids/],
])('%s is refused by name', async (_, change, why) => {
  await expect(load(folderWith({ 'config.json': { model_type: 'gpt2' }, ...change }))).rejects.toThrow(why);
});
