/** Conversions by CTranslate2's own converter (test/tools/dump_ctranslate2.py) against the Hugging Face folder that they were made from. */
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, onTestFinished, test } from 'vitest';
import { parseWhisperConfig, parseWhisperTokens } from '../../engine/models/whisper/config.ts';
import { createNodePlatform } from '../../engine/platform/node.ts';
import { toF16, fromF16 } from '../../engine/util/f16.ts';
import { isObject } from '../../engine/util/json.ts';
import type { Checkpoint } from '../../engine/weights/checkpoint.ts';
import { withWeights } from '../../engine/weights/model-folder.ts';
import { parseVocabulary, tokenizerOf } from '../../engine/weights/ctranslate2/vocabulary.ts';
import { openModelFolder } from '../../engine/weights/open-model-folder.ts';

const FIXTURE = fileURLToPath(new URL('../fixtures/ctranslate2-tiny-random/', import.meta.url));
const platform = createNodePlatform();
const open = (name: string) => openModelFolder(platform, join(FIXTURE, name));

/** The largest value of each row, or of all. */
function largest(values: Float32Array, rows: number): Float32Array {
  const width = values.length / rows;
  return Float32Array.from({ length: rows }, (_, row) => values.subarray(row * width, (row + 1) * width).reduce((most, value) => Math.max(most, Math.abs(value)), 0)); // prettier-ignore
}

/** How far a stored value may be from the original: half a step of its integers, of which there are `steps` up to the largest value. */
function halfStep(values: Float32Array, rows: number, steps: number): (i: number) => number {
  const most = largest(values, rows);
  return (i) => (most[Math.floor((i * rows) / values.length)]! / steps) * 0.5001;
}

const halfPrecision = (values: Float32Array) => (i: number) => Math.abs(fromF16(toF16([values[i]!]))[0]! - values[i]!);

const ROUNDING: Readonly<Record<string, (values: Float32Array, shape: readonly number[]) => (i: number) => number>> = {
  float32: () => () => 0,
  float16: halfPrecision,
  bfloat16: (values) => (i) => Math.abs(values[i]!) / 256,
  int16: (values, shape) => (shape.length > 1 ? halfStep(values, 1, 1024) : () => 0),
  int8: (values, shape) => (shape.length > 1 ? halfStep(values, shape[0]!, 127) : () => 0),
  int8_float16: (values, shape) => (shape.length > 1 ? halfStep(values, shape[0]!, 127) : halfPrecision(values)),
};

describe.each(Object.entries(ROUNDING))('a model.bin in %s', (storage, bound) => {
  test('has the tensors of the original, up to the rounding of the storage', async () => {
    const originals = await open('huggingface');
    const converted = await open(storage);
    await withWeights(originals, (a) => withWeights(converted, (b) => compare(a, b)));
  });

  async function compare(a: Checkpoint, b: Checkpoint): Promise<void> {
    expect([...b.names()].sort()).toEqual([...a.names()].sort());
    for (const name of a.names()) {
      const { shape } = a.tensor(name)!;
      expect(b.tensor(name)!.shape, name).toEqual(shape);
      const [wanted, found] = [await a.read(name), await b.read(name)];
      // Tables of positions are looked up, and are stored as they are. Rows of a matrix that was merged with others share the step of all of them.
      const isTable = name.includes('embed_positions');
      const slack = storage === 'int16' && /(self_attn\.[qkv]|encoder_attn\.[kv])_proj/.test(name) ? 2 : 1;
      const most = isTable && storage.startsWith('int') ? (storage === 'int8_float16' ? halfPrecision(wanted) : () => 0) : bound(wanted, shape); // prettier-ignore
      const wrong = wanted.findIndex((value, i) => !(Math.abs(value - found[i]!) <= slack * most(i) + 1e-9));
      expect(wrong, `${name}: ${wanted[wrong]} is ${found[wrong]} at ${wrong}`).toBe(-1);
      const [from, to] = [Math.floor(found.length / 3), Math.ceil((2 * found.length) / 3)];
      expect(await b.read(name, { from, to }), name).toEqual(found.slice(from, to));
    }
  }

  test('says in its made-up files what the original says', async () => {
    const [original, converted] = [await open('huggingface'), await open(storage)];
    const preprocessor = await original.json('preprocessor_config.json');
    expect(await converted.json('preprocessor_config.json')).toEqual({
      feature_extractor_type: 'WhisperFeatureExtractor', feature_size: preprocessor['feature_size'], sampling_rate: 16_000, hop_length: 160, n_fft: 400,
    }); // prettier-ignore
    const config = parseWhisperConfig(await original.json('config.json'), preprocessor);
    expect(parseWhisperConfig(await converted.json('config.json'), await converted.json('preprocessor_config.json'))).toEqual(config);
    const tokens = async (folder: typeof original) => {
      const { added_tokens: added } = await folder.json('tokenizer.json');
      const ids = new Map((added as { content: string; id: number }[]).map(({ content, id }) => [content, id]));
      return parseWhisperTokens(await folder.json('config.json'), await folder.json('generation_config.json'), ids, config.vocabulary);
    };
    expect(await tokens(converted)).toEqual(await tokens(original));
  });

  test('has the tokenizer of the original, also where only the list of tokens is there', async () => {
    const of = async (name: string) => {
      const { model, added_tokens: added } = await (await open(name)).json('tokenizer.json');
      return { vocab: isObject(model) && model['vocab'], merges: isObject(model) && model['merges'], added };
    };
    expect(await of(storage)).toEqual(await of('huggingface'));
  });
});

test('the list of a multilingual model, which has an empty token in front of the special ones, makes a tokenizer', async () => {
  const list = JSON.parse(readFileSync(join(FIXTURE, 'float16', 'vocabulary.json'), 'utf8')) as string[];
  const at = list.indexOf('<|endoftext|>');
  const plain = tokenizerOf('vocabulary.json', list)['model'];
  const whole = [...list.slice(0, at), '', ...list.slice(at)];
  for (const [path, content] of [
    ['vocabulary.json', JSON.stringify(whole)],
    ['vocabulary.txt', `${whole.join('\n')}\n`],
  ] as const) {
    const { model, added_tokens: added } = tokenizerOf(path, parseVocabulary(path, content));
    expect(model).toEqual({ ...(plain as object), vocab: Object.fromEntries(whole.slice(0, at + 1).map((token, id) => [token, id])) });
    expect(added).toContainEqual(expect.objectContaining({ id: at + 1, content: '<|endoftext|>' }));
  }
});

test("the file itself opens its folder, served by the folder's name", async () => {
  const folder = await openModelFolder(platform, join(FIXTURE, 'int8', 'model.bin'));
  expect(folder.id).toBe('int8');
  expect((await folder.json('config.json'))['d_model']).toBe(24);
});

function copy(change: (bytes: Buffer, at: (text: string) => number) => Buffer, storage = 'float32'): string {
  const path = mkdtempSync(join(tmpdir(), 'parley-'));
  onTestFinished(() => rmSync(path, { recursive: true }));
  cpSync(join(FIXTURE, storage), path, { recursive: true });
  const bytes = readFileSync(join(path, 'model.bin'));
  writeFileSync(
    join(path, 'model.bin'),
    change(bytes, (text) => bytes.indexOf(text)),
  );
  return path;
}

/** A variable stands for another, as the converter writes it where both are equal: it and its scale are cut out, and its name is added to the list. */
function aliased(bytes: Buffer, alias: string, name: string): Buffer {
  const text = (value: string): Buffer => {
    const length = Buffer.alloc(2);
    length.writeUInt16LE(value.length + 1);
    return Buffer.concat([length, Buffer.from(`${value}\0`)]);
  };
  let left = Buffer.from(bytes);
  const count = (at: number, by: number): number => left.writeUInt32LE(left.readUInt32LE(at) + by, at);
  for (const cut of [alias, `${alias}_scale`]) {
    const from = left.indexOf(text(cut));
    if (from < 0) continue;
    const rank = from + text(cut).length;
    const size = rank + 1 + 4 * left[rank]! + 1;
    left = Buffer.concat([left.subarray(0, from), left.subarray(size + 4 + left.readUInt32LE(size))]);
    count(left.indexOf('WhisperSpec\0') + 'WhisperSpec\0'.length + 4, -1);
  }
  count(left.lastIndexOf(text('decoder/projection/weight')) - 4, 1);
  return Buffer.concat([left, text(alias), text(name)]);
}

test.each(['float32', 'int8'])('equal variables that are stored once are read under all their names, in %s', async (storage) => {
  const [first, second] = [0, 1].map((layer) => `encoder/layer_${layer}/self_attention`) as [string, string];
  const path = copy((bytes) => {
    const norm = aliased(bytes, `${second}/layer_norm/gamma`, `${first}/layer_norm/gamma`);
    return aliased(norm, `${second}/linear_1/weight`, `${first}/linear_1/weight`);
  }, storage);
  await withWeights(await openModelFolder(platform, path), async (checkpoint) => {
    for (const part of ['self_attn_layer_norm.weight', 'self_attn.out_proj.weight']) {
      const [one, other] = [0, 1].map((layer) => checkpoint.read(`model.encoder.layers.${layer}.${part}`));
      expect(await other, part).toEqual(await one);
    }
  });
});

test.each([
  ['of another kind', (b: Buffer, at: (t: string) => number) => (b.write('WhasperSpec', at('WhisperSpec')), b), /holds a WhasperSpec; of CTranslate2's models only Whisper/],
  ['of a version to come', (b: Buffer) => (b.writeUInt32LE(7, 0), b), /its version is 7, expected 2 to 6/],
  ['that is cut short', (b: Buffer) => b.subarray(0, b.length - 100_000), /model\.bin is cut short or damaged: .* takes \d+ bytes at byte \d+, and \d+ are left/],
  ['with more behind it', (b: Buffer) => Buffer.concat([b, Buffer.of(0)]), /1 bytes follow its last variable/],
  ['with keys that have a bias', (b: Buffer, at: (t: string) => number) => (b.writeFloatLE(1, at('encoder/layer_1/self_attention/linear_0/bias') + 43 + 1 + 1 + 4 + 5 + 4 * 30), b), /the key projection encoder\/layer_1\/self_attention\/linear_0 has a bias/],
  ['with a variable of another name', (b: Buffer, at: (t: string) => number) => (b.write('encodes/conv1/bias', at('encoder/conv1/bias')), b), /it lacks the variable encoder\/conv1\/bias/],
  ['that claims a huge matrix', (b: Buffer, at: (t: string) => number) => (b.writeUInt32LE(2 ** 31, at('encoder/conv1/weight') + 21 + 1), b), /\[2147483648, 20, 3\] f32 takes \d+ bytes, expected \d+/],
] as const)('a model.bin %s is refused', async (_, change, message) => {
  await expect(openModelFolder(platform, copy(change))).rejects.toMatchObject({ code: 'invalid_model', message: expect.stringMatching(message) });
}); // prettier-ignore
