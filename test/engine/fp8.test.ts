/** FP8 weights as PyTorch reads them, with scales as published checkpoints have them: test/tools/dump_fp8.py writes the fixtures. */
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, onTestFinished, test } from 'vitest';
import { createNodePlatform } from '../../engine/platform/node.ts';
import { F8_E4M3, F8_E5M2, F8_E8M0 } from '../../engine/util/f8.ts';
import { describeQuantization, weightSchemesOf } from '../../engine/util/foreign-format.ts';
import type { Checkpoint } from '../../engine/weights/checkpoint.ts';
import { withWeights } from '../../engine/weights/model-folder.ts';
import { openModelFolder } from '../../engine/weights/open-model-folder.ts';
import { openSafetensors } from '../../engine/weights/safetensors.ts';

const FIXTURE = fileURLToPath(new URL('../fixtures/fp8/', import.meta.url));
const platform = createNodePlatform();

test.each(Object.entries({ F8_E4M3, F8_E5M2, F8_E8M0 }))('all 256 codes of %s are what PyTorch reads', (name, table) => {
  const codes = JSON.parse(readFileSync(join(FIXTURE, 'codes.json'), 'utf8')) as Record<string, (number | null)[]>;
  const bits = new Uint32Array(table.buffer);
  expect(codes[name]!.map((_, code) => (Number.isNaN(table[code]) ? null : bits[code]))).toEqual(codes[name]);
});

const read = <T>(path: string, use: (checkpoint: Checkpoint) => Promise<T>): Promise<T> =>
  openModelFolder(platform, path).then((folder) => folder.json('config.json').then(() => withWeights(folder, use)));

test.each(['block', 'channel', 'tensor', 'plain'])(
  'matrices scaled by %s are what they were made from, whole and in parts',
  async (name) => {
    const golden = await openSafetensors(platform, join(FIXTURE, name), 'golden.safetensors');
    await read(join(FIXTURE, name), async (checkpoint) => {
      expect([...checkpoint.names()].sort()).toEqual([...golden.names()].sort());
      for (const tensor of golden.names()) {
        const expected = await golden.read(tensor);
        expect(checkpoint.tensor(tensor)?.shape).toEqual(golden.tensor(tensor)?.shape);
        expect([...(await checkpoint.read(tensor))]).toEqual([...expected]);
        const part = { from: 3, to: expected.length - 5 };
        expect([...(await checkpoint.read(tensor, part))]).toEqual([...expected.subarray(part.from, part.to)]);
      }
    });
    await golden.close();
  },
);

function changed(name: string, change: (files: { config: Record<string, unknown>; weights: Buffer }) => void): string {
  const folder = mkdtempSync(join(tmpdir(), 'parley-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  cpSync(join(FIXTURE, name), folder, { recursive: true });
  const files = {
    config: JSON.parse(readFileSync(join(folder, 'config.json'), 'utf8')) as Record<string, unknown>,
    weights: readFileSync(join(folder, 'model.safetensors')),
  };
  change(files);
  writeFileSync(join(folder, 'config.json'), JSON.stringify(files.config));
  writeFileSync(join(folder, 'model.safetensors'), files.weights);
  return folder;
}

/** A header's text with as many other characters in place of some. */
function rename(weights: Buffer, from: string, to: string): void {
  for (let at = weights.indexOf(from); at >= 0; at = weights.indexOf(from, at)) weights.write(to, at);
}

test.each([
  [
    'a scale under another name',
    (w: Buffer) => rename(w, 'a.weight_scale', 'a.scale_weight'),
    /model.safetensors: tensor a.weight is F8_E4M3, whose scale is not known: expected a.weight_scale or a.weight_scale_inv, found a.scale_weight$/,
  ],
  [
    'no scale',
    (w: Buffer) => rename(w, 'a.weight_scale', 'b.weight_other'),
    /tensor a.weight is F8_E4M3, whose scale is not known: expected a.weight_scale or a.weight_scale_inv$/,
  ],
  [
    'scales that do not fit',
    (w: Buffer) => rename(w, '[20,1]', '[4, 5]'),
    /tensor a.weight is F8_E4M3, \[20, 24\], and its scale \[4, 5\]; expected one for all, or one for each row \(config.json says nothing of blocks\)$/,
  ],
  [
    'scales of integers',
    (w: Buffer) => rename(w, '"BF16","shape":[20,1]', '"I16" ,"shape":[20,1]'),
    /its scale a.weight_scale is I16, expected F32, F16, BF16 or F8_E8M0$/,
  ],
  ['a code that is no number', (w: Buffer) => w.fill(0x7f, w.length - 100), /holds NaN at element/],
])('%s is refused by name', async (_, change, message) => {
  const folder = changed('channel', ({ weights }) => change(weights));
  const reading = read(folder, async (checkpoint) => {
    for (const name of checkpoint.names()) await checkpoint.read(name);
  });
  await expect(reading).rejects.toThrow(message);
  await expect(reading).rejects.toMatchObject({ code: 'invalid_model' });
});

test('blocks of another size than the scales are for are refused', async () => {
  const folder = changed('channel', ({ config }) =>
    Object.assign(config, { quantization_config: { quant_method: 'fp8', weight_block_size: [8, 8] } }),
  );
  rmSync(join(folder, 'model.safetensors'));
  cpSync(join(FIXTURE, 'block'), folder, { recursive: true, filter: (file) => !file.endsWith('config.json') });
  await expect(read(folder, () => Promise.resolve())).rejects.toThrow(
    /and its scale \[3, 2\]; expected one for all, or one for each row, or one for 8 x 8 elements/,
  );
});

const compressed = (weights: object, more: object = {}): object => ({ quant_method: 'compressed-tensors', config_groups: { g: { weights: { type: 'float', num_bits: 8, ...weights } } }, ...more }); // prettier-ignore

test.each([
  [{ quant_method: 'fp8' }, { block: [128, 128] }],
  [{ quant_method: 'fp8', weight_block_size: null }, {}],
  [{ quant_method: 'fbgemm_fp8' }, {}],
  [{ quant_method: 'modelopt', quant_algo: 'FP8' }, {}],
  [compressed({ strategy: 'tensor' }), {}],
  [compressed({ strategy: 'block', block_structure: '128x64' }), { block: [128, 64] }],
  [compressed({ strategy: 'group', group_size: 32 }), { block: [1, 32] }],
])('%o is read', (quantization_config, scheme) => {
  expect(describeQuantization({ quantization_config })).toBeUndefined();
  expect(weightSchemesOf({ quantization_config })).toEqual({ fp8: scheme });
});

test.each([
  [{ quant_method: 'fp8', weight_block_size: [128] }, /quantised with FP8, and weight_block_size is a list of 1, expected two sizes;/],
  [{ quant_method: 'modelopt', quant_algo: 'NVFP4_AWQ' }, /quantised with "modelopt", which is not read;/],
  [compressed({ num_bits: 4 }), /quantised with compressed-tensors, which is not read;/],
  [compressed({ strategy: 'token' }), /and the strategy "token" of FP8 weights is not known;/],
  [compressed({ symmetric: false }), /and FP8 weights with zero points are not read;/],
  [compressed({}, { sparsity_config: { format: 'sparse-24-bitmask' } }), /and sparse weights are not read;/],
])('%o is refused by name', (quantization_config, message) => {
  expect(describeQuantization({ quantization_config })).toMatch(message);
  expect(weightSchemesOf({ quantization_config })).toEqual({});
});
