/** Kokoro as torch, ONNX and ONNX Runtime write it (test/tools/dump_kokoro_formats.py) against the safetensors that it was made from. */
import { mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { createNodePlatform } from '../../engine/platform/node.ts';
import { shapeOf } from '../../engine/weights/checkpoint.ts';
import type { Checkpoint } from '../../engine/weights/checkpoint.ts';
import { withWeights } from '../../engine/weights/model-folder.ts';
import { openModelFolder } from '../../engine/weights/open-model-folder.ts';
import { readPickle } from '../../engine/weights/pytorch/pickle.ts';
import { zipOf } from '../support/archives.ts';
import { kokoroFormat } from '../support/kokoro-formats.ts';

const platform = createNodePlatform();

function folderOf(name: string): string {
  const folder = kokoroFormat(name);
  onTestFinished(() => rmSync(folder, { recursive: true }));
  return folder;
}

/** A weight with its weight norm folded, w = g v / |v|. */
async function folded(checkpoint: Checkpoint, name: string): Promise<Float32Array> {
  const stem = name.replace(/weight$/, '');
  if (checkpoint.tensor(name) || !checkpoint.tensor(`${stem}weight_g`)) return checkpoint.read(name);
  const [g, v] = [await checkpoint.read(`${stem}weight_g`), await checkpoint.read(`${stem}weight_v`)];
  const width = v.length / g.length;
  return v.map((value, i) => (value * g[Math.floor(i / width)]!) / Math.hypot(...v.subarray(Math.floor(i / width) * width, (Math.floor(i / width) + 1) * width)));
} // prettier-ignore

test.each([
  ['pth', 0],
  ['onnx', 1e-6],
  // One of 255 steps between the smallest and the largest value: half of one by rounding the value, half by rounding what stands for zero.
  ['onnx-int8', 1 / 127.5],
])('%s has all weights and voices, up to %d of the largest', async (name, bound) => {
  const original = await openModelFolder(platform, folderOf('safetensors'));
  const folder = await openModelFolder(platform, folderOf(name));
  expect(await folder.json('config.json')).toEqual(await original.json('config.json'));
  await withWeights(original, (a) => withWeights(folder, (b) => compare(a, b, bound)));
  const voices = 'voices.safetensors';
  await withWeights(original, (a) => withWeights(folder, (b) => compare(a, b, 0), voices), voices);
});

async function compare(original: Checkpoint, found: Checkpoint, bound: number): Promise<void> {
  const names = new Set(original.names().map((name) => name.replace(/weight_[gv]$/, 'weight')));
  // ALBERT's last layer of one output is not exported, because nothing reads it.
  for (const name of names) {
    if (!found.tensor(name) && !found.tensor(`${name}_g`) && name.startsWith('bert.pooler.')) continue;
    const [wanted, got] = [await folded(original, name), await folded(found, name)];
    const most = wanted.reduce((max, value) => Math.max(max, Math.abs(value)), 0);
    const wrong = wanted.findIndex((value, i) => !(Math.abs(value - got[i]!) <= bound * most));
    expect(got.length, name).toBe(wanted.length);
    expect(wrong, `${name}: ${wanted[wrong]} is ${got[wrong]}`).toBe(-1);
  }
  const extra = found.names().filter((name) => !names.has(name.replace(/weight_[gv]$/, 'weight')));
  expect(extra).toEqual([]);
}

test('a file of weights opens with the voices beside it, also from a folder onnx/', async () => {
  const path = folderOf('onnx');
  mkdirSync(join(path, 'onnx'));
  renameSync(join(path, 'kokoro.onnx'), join(path, 'onnx', 'model.onnx'));
  for (const place of [path, join(path, 'onnx', 'model.onnx')]) {
    const folder = await openModelFolder(platform, place);
    expect(folder.where('model.safetensors')).toBe(join(path, 'onnx', 'model.onnx'));
    await withWeights(folder, async (voices) => expect(shapeOf(voices, 'af_one')).toEqual([6, 1, 16]), 'voices.safetensors');
  }
});

test('without a config.json the sizes are those of Kokoro-82M', async () => {
  const path = folderOf('onnx');
  rmSync(join(path, 'config.json'));
  const config = await (await openModelFolder(platform, path)).json('config.json');
  expect(config).toMatchObject({ model_type: 'kokoro', style_dim: 128, n_token: 178, vocab: { ' ': 16, ᵻ: 177, ˈ: 156 } });
});

const GLOBAL = (module: string, name: string): string => `c${module}\n${name}\n`;
const text = (value: string): string => `X${String.fromCharCode(value.length)}\0\0\0${value}`;

test.each([
  ['os.system', `\x80\x02${GLOBAL('os', 'system')}${text('touch x')}\x85R.`, /names os\.system, which is not run/],
  ['builtins.eval by its protocol 4 name', `\x80\x04\x8c\x08builtins\x8c\x04eval\x93.`, /names builtins\.eval, which is not run/],
  ['torch.load', `\x80\x02${GLOBAL('torch', 'load')}.`, /names torch\.load, which is not run/],
  ['an instance by INST', `\x80\x02(ios\nsystem\n.`, /the opcode 0x69 at byte 3, which no checkpoint needs/],
  ['an object by NEWOBJ', `\x80\x02${GLOBAL('collections', 'OrderedDict')})\x81.`, /the opcode 0x81/],
  ['OrderedDict of what it is not', `\x80\x02${GLOBAL('collections', 'OrderedDict')}${text('a')}\x85R.`, /calls collections\.OrderedDict with arguments that make no tensor/],
  ['a storage of a type it is not', `\x80\x02(${text('storage')}${text('os')}${text('0')}${text('cpu')}K\x01tQ.`, /refers to something outside that is no storage/],
  ['nothing', '', /is cut short/],
  ['a name on two lines', `\x80\x02${text('a\nb')}.`, /the text at byte 7 is no name: "a\\nb"/],
  ['a million dictionaries', `\x80\x02${'}'.repeat(2 ** 20)}.`, /more than 262144 opcodes; no more are read/],
] as const)('a pickle of %s is refused by name, and nothing is run', (_, pickle, message) => {
  expect(() => readPickle('x.pth', Uint8Array.from(pickle, (c) => c.charCodeAt(0)))).toThrow(message);
}); // prettier-ignore

test('a dictionary that holds itself in each of its entries is refused, not walked through', async () => {
  const path = folderOf('pth');
  const entries = Array.from({ length: 1000 }, (_, i) => `${text(String(i))}h\0`);
  const pickle = Buffer.from(`\x80\x02}q\0(${entries.join('')}u.`, 'latin1');
  writeFileSync(join(path, 'kokoro-v1_0.pth'), zipOf([{ path: 'k/data.pkl', content: pickle }]));
  const folder = await openModelFolder(platform, path);
  const message = expect.stringMatching(/kokoro-v1_0\.pth has dictionaries of more than 16384 entries; no more are read/);
  await expect(folder.weights()).rejects.toMatchObject({ code: 'invalid_model', message });
});

test.each([
  ['onnx', 'kokoro.onnx', (b: Buffer) => b.subarray(0, b.length >> 1), /kokoro\.onnx is cut short or damaged/],
  ['pth', 'kokoro-v1_0.pth', (b: Buffer) => b.subarray(0, b.length >> 1), /kokoro-v1_0\.pth is not a zip archive that can be read: it has no table of files at its end/],
  ['pth', 'kokoro-v1_0.pth', () => Buffer.from('\x80\x02}q\0.', 'latin1'), /kokoro-v1_0\.pth is in the format that torch\.save wrote before PyTorch 1\.6/],
] as const)('a damaged file of %s is refused with its name (%s)', async (name, file, change, message) => {
  const path = folderOf(name);
  writeFileSync(join(path, file), change(readFileSync(join(path, file))));
  const folder = await openModelFolder(platform, path);
  await expect(folder.weights()).rejects.toMatchObject({ code: 'invalid_model', message: expect.stringMatching(message) });
}); // prettier-ignore
