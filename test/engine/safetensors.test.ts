import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { createNodePlatform } from '../../engine/platform/node.ts';
import { Checkpoint } from '../../engine/weights/safetensors.ts';
import { WeightLoader } from '../../engine/weights/weight-loader.ts';
import type { Device } from '../../engine/gpu/device.ts';
import { toF16 } from '../../engine/util/f16.ts';

const platform = createNodePlatform();

/** A file with two tensors: a [2, 2] F32 and b [3] F16. */
function fileBytes(header?: unknown): Uint8Array {
  const json = JSON.stringify(
    header ?? { __metadata__: { format: 'pt' }, a: { dtype: 'F32', shape: [2, 2], data_offsets: [0, 16] }, b: { dtype: 'F16', shape: [3], data_offsets: [16, 22] } },
  ); // prettier-ignore
  const bytes = new Uint8Array(8 + json.length + 22);
  new DataView(bytes.buffer).setBigUint64(0, BigInt(json.length), true);
  bytes.set(new TextEncoder().encode(json), 8);
  bytes.set(new Uint8Array(Float32Array.of(1, -2, 3, 0.5).buffer), 8 + json.length);
  bytes.set(new Uint8Array(toF16([0.25, -8, 65504]).buffer), 8 + json.length + 16);
  return bytes;
}

function folder(files: Record<string, Uint8Array | string>): string {
  const path = mkdtempSync(join(tmpdir(), 'parley-'));
  onTestFinished(() => rmSync(path, { recursive: true }));
  for (const [name, bytes] of Object.entries(files)) writeFileSync(join(path, name), bytes);
  return path;
}

test('reads f32 and f16 tensors by name', async () => {
  const checkpoint = await Checkpoint.open(platform, folder({ 'model.safetensors': fileBytes() }));
  expect(checkpoint.names()).toEqual(['a', 'b']);
  expect(checkpoint.shape('a')).toEqual([2, 2]);
  expect([...(await checkpoint.read('a'))]).toEqual([1, -2, 3, 0.5]);
  expect([...(await checkpoint.read('b'))]).toEqual([0.25, -8, 65504]);
  await checkpoint.close();
});

test('reads a sharded checkpoint through its index', async () => {
  const one = fileBytes();
  const two = fileBytes({
    c: { dtype: 'F32', shape: [4], data_offsets: [0, 16] },
    d: { dtype: 'BF16', shape: [3], data_offsets: [16, 22] },
  });
  const index = JSON.stringify({ weight_map: { a: '1.safetensors', b: '1.safetensors', c: '2.safetensors', d: '2.safetensors' } });
  const path = folder({ '1.safetensors': one, '2.safetensors': two, 'model.safetensors.index.json': index });
  const checkpoint = await Checkpoint.open(platform, path);
  expect(checkpoint.names().sort()).toEqual(['a', 'b', 'c', 'd']);
  expect([...(await checkpoint.read('c'))]).toEqual([1, -2, 3, 0.5]);
  await checkpoint.close();
});

test.each([
  ['an empty file', new Uint8Array(0), /it has 0 bytes/],
  ['a header length beyond the file', new Uint8Array(16).fill(255, 0, 6), /header claims/],
  ['a file cut short', fileBytes().slice(0, -8), /cut short/],
  ['a header that is not JSON', fileBytes('text'), /not a JSON object/],
  ['an unknown dtype', fileBytes({ a: { dtype: 'F8', shape: [1], data_offsets: [0, 1] } }), /dtype F8/],
])('refuses %s with the reason', async (_, bytes, message) => {
  const path = folder({ 'model.safetensors': bytes });
  await expect(Checkpoint.open(platform, path)).rejects.toThrow(message);
});

test('the loader checks shapes and fails on leftovers', async () => {
  const checkpoint = await Checkpoint.open(platform, folder({ 'model.safetensors': fileBytes() }));
  const loader = new WeightLoader(undefined as unknown as Device, checkpoint, 'f32');
  await expect(loader.data('a', [4])).rejects.toThrow('tensor a has shape [2, 2], expected [4]');
  await expect(loader.data('z', [4])).rejects.toThrow('tensor z is missing');
  await loader.data('a', [2, 2]);
  expect(() => loader.finish()).toThrow('1 tensors this architecture does not use: b');
  loader.skip('b');
  loader.finish();
  expect(loader.parameters).toBe(4);
  await checkpoint.close();
});
