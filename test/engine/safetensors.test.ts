import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { createNodePlatform } from '../../engine/platform/node.ts';
import { LOAD_AS_F32 } from '../../engine/errors.ts';
import { WeightLoader } from '../../engine/models/weight-loader.ts';
import { openSafetensors } from '../../engine/weights/safetensors.ts';
import { floatStorage } from '../../engine/config.ts';
import type { Device } from '../../engine/gpu/device.ts';
import { testDevice } from '../support/device.ts';
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
  const checkpoint = await openSafetensors(platform, folder({ 'model.safetensors': fileBytes() }));
  expect(checkpoint.names()).toEqual(['a', 'b']);
  expect(checkpoint.tensor('a')).toMatchObject({ dtype: 'F32', shape: [2, 2] });
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
  const checkpoint = await openSafetensors(platform, path);
  expect([...checkpoint.names()].sort()).toEqual(['a', 'b', 'c', 'd']);
  expect([...(await checkpoint.read('c'))]).toEqual([1, -2, 3, 0.5]);
  await checkpoint.close();
});

/** A file whose header is this text, with the 22 bytes of data that fileBytes has. */
function rawHeader(text: string): Uint8Array {
  const header = new TextEncoder().encode(text);
  const bytes = new Uint8Array(8 + header.length + 22);
  new DataView(bytes.buffer).setBigUint64(0, BigInt(header.length), true);
  bytes.set(header, 8);
  return bytes;
}

const entry = (dtype: unknown, shape: unknown, offsets: unknown): object => ({ dtype, shape, data_offsets: offsets });
const b = entry('F16', [3], [16, 22]);

test.each([
  ['an empty file', new Uint8Array(0), /it has 0 bytes/],
  ['a header length beyond the file', new Uint8Array(16).fill(255, 0, 6), /header claims/],
  ['a file cut short', fileBytes().slice(0, -8), /cut short/],
  ['a header that is no object', fileBytes('text'), /header of .* holds "text", expected a JSON object/],
  ['a header that is null', rawHeader('null'), /header of .* holds null/],
  ['a header that is not JSON', rawHeader('{"a"'), /header of .* is not JSON/],
  ['a header of brackets', rawHeader('['.repeat(4 << 20)), /deeper than 3 levels/],
  ['a header of too many values', rawHeader(`{"a":[${'0,'.repeat(2 << 20)}0]}`), /more than 524288 JSON values/],
  ['a header of too many names', rawHeader(`{"__metadata__":{${'"a":"",'.repeat(1 << 18)}"b":""}}`), /more than 262144 named JSON values/],
  ['an unknown dtype', fileBytes({ a: entry('F7', [1], [0, 1]) }), /a has dtype "F7"/],
  ['an entry that is null', fileBytes({ a: null }), /tensor a is null, expected an object/],
  ['a shape that is none', fileBytes({ a: entry('F32', [-4], [0, 16]), b }), /tensor a has shape a list of 1/],
  ['a size that is no integer', fileBytes({ a: entry('F32', [1e300], [0, 16]), b }), /tensor a has shape/],
  [
    'a name on two lines',
    fileBytes({ 'a\n\x1b[31m': entry('F32', [4], [0, 16]), b }),
    /the name of a tensor is no text: "a\\n\\u001b\[31m"/,
  ],
  ['offsets that are none', fileBytes({ a: entry('F32', [4], '0-16'), b }), /tensor a has data_offsets "0-16"/],
  ['negative offsets', fileBytes({ a: entry('F32', [4], [-16, 0]), b }), /tensor a has data_offsets/],
  ['offsets beside the shape', fileBytes({ a: entry('F32', [4], [0, 12]), b }), /lies at 0..12, expected 16 bytes/],
  ['tensors that overlap', fileBytes({ a: entry('F32', [4], [0, 16]), b: entry('F32', [3], [10, 22]) }), /its tensors overlap at byte/],
  ['a gap between tensors', fileBytes({ a: entry('F32', [3], [0, 12]), b }), /its tensors leave a gap at byte/],
  ['bytes that belong to no tensor', fileBytes({ a: entry('F32', [4], [0, 16]) }), /its tensors end at byte/],
  ['a pointer', new TextEncoder().encode('version https://git-lfs.github.com/spec/v1\n'), /is a pointer of Git LFS, not the file itself/],
  ['a GGUF file', new TextEncoder().encode('GGUF\x03\0\0\0\0\0\0\0'), /is a GGUF file; give the file itself/],
  ['a pickle of old', Uint8Array.of(0x80, 2, 0x8a, 0x0a, 0x6c, 0xfc, 0x9c, 0x46, 0xf9, 0x20), /pickled PyTorch weights/],
  ['a pickled file', new TextEncoder().encode('PK\x03\x04 and so on'), /pickled PyTorch weights.*safetensors.torch.save_file/],
])('refuses %s with the reason', async (_, bytes, message) => {
  const path = folder({ 'model.safetensors': bytes });
  await expect(openSafetensors(platform, path)).rejects.toThrow(message);
  await expect(openSafetensors(platform, path)).rejects.toMatchObject({ code: 'invalid_model' });
});

test.each([0, 2 ** 16])('a header of 640 + %d bytes, whose length begins as a pickle does, is read', async (more) => {
  const text = JSON.stringify({ a: entry('F32', [4], [0, 16]), b }).padEnd(640 + more);
  const checkpoint = await openSafetensors(platform, folder({ 'model.safetensors': rawHeader(text) }));
  onTestFinished(() => checkpoint.close());
  expect(checkpoint.names()).toEqual(['a', 'b']);
});

test('a header above 64 MiB is refused by its length, without being read', async () => {
  const path = folder({});
  // A sparse file: 100 MB that take no room.
  const file = join(path, 'model.safetensors');
  const head = new Uint8Array(8);
  new DataView(head.buffer).setBigUint64(0, 99_000_000n, true);
  writeFileSync(file, head);
  truncateSync(file, 100_000_000);
  await expect(openSafetensors(platform, path)).rejects.toThrow(/the header claims 99000000 bytes; at most 67108864 are read/);
});

test.each([
  ['null', 'null', /index.json holds null/],
  ['not JSON', '{', /index.json is not JSON/],
  ['without a map', '{}', /weight_map is undefined, expected an object/],
  ['with numbers', '{"weight_map":{"a":5}}', /names the file 5, expected a .safetensors file of its own folder/],
  ['that climbs', '{"weight_map":{"a":"../1.safetensors"}}', /names the file "..\/1.safetensors", expected/],
  ['with an absolute path', '{"weight_map":{"a":"/1.safetensors"}}', /names the file "\/1.safetensors", expected/],
  ['with a drive', '{"weight_map":{"a":"C:\\\\1.safetensors"}}', /names the file "C:/],
  ['with what is no shard', '{"weight_map":{"a":"config.json"}}', /names the file "config.json"/],
])('refuses an index %s', async (_, index, message) => {
  await expect(openSafetensors(platform, folder({ 'model.safetensors.index.json': index }))).rejects.toThrow(message);
});

test('folders and pipes are no files', async () => {
  const path = folder({});
  mkdirSync(join(path, 'model.safetensors'));
  await expect(openSafetensors(platform, path)).rejects.toThrow(/a folder stands where a file is expected: .*model.safetensors/);
  if (process.platform === 'win32') return console.log('pipes: skipped, Windows has no named ones in folders');
  const piped = folder({});
  execFileSync('mkfifo', [join(piped, 'model.safetensors')]);
  await expect(openSafetensors(platform, piped)).rejects.toThrow(/not a regular file: .*model.safetensors/);
});

test.each([
  ['I32', /a has dtype I32 \(integers are no weights.*expected F32, F16, BF16, F64 or FP8/],
  ['BOOL', /a has dtype BOOL \(integers are no weights/],
])('%s may stand in a file, but is no weight', async (dtype, message) => {
  const size = dtype === 'I32' ? 4 : 16;
  const checkpoint = await openSafetensors(platform, folder({ 'model.safetensors': fileBytes({ a: entry(dtype, [size], [0, 16]), b }) }));
  await expect(checkpoint.read('a')).rejects.toThrow(message);
  expect([...(await checkpoint.read('b'))]).toEqual([0.25, -8, 65504]);
  await checkpoint.close();
});

test('values that are not finite are refused with tensor and element, and so are those that f16 cannot hold', async () => {
  const bytes = fileBytes();
  const data = bytes.length - 22;
  const put = (value: number): Uint8Array => {
    const changed = bytes.slice();
    changed.set(new Uint8Array(Float32Array.of(value).buffer), data + 8);
    return changed;
  };
  for (const value of [NaN, Infinity, -Infinity]) {
    const checkpoint = await openSafetensors(platform, folder({ 'model.safetensors': put(value) }));
    await expect(checkpoint.read('a')).rejects.toThrow(`tensor a holds ${value} at element 2, expected finite values`);
    await expect(checkpoint.read('a', { from: 2, to: 4 })).rejects.toThrow(`tensor a holds ${value} at element 2`);
    await checkpoint.close();
  }
  const device = await testDevice();
  for (const [value, says] of [[-65520, /tensor a holds -65520, which f16 cannot hold/], [NaN, /tensor a holds NaN at element 2/]] as const) {
    const checkpoint = await openSafetensors(platform, folder({ 'model.safetensors': put(value) }));
    // Matrices are checked on the device, which is asked at the end.
    for (const take of [(loader: WeightLoader) => loader.linear('a', 2, 2), (loader: WeightLoader) => loader.mergedLinear('ab', [{ name: 'a', outFeatures: 2 }], 2)]) {
      const loader = new WeightLoader(device, checkpoint, floatStorage('f16'));
      await take(loader);
      // The loader's own: b is deliberately not loaded. No test is left out.
      loader.skip('b');
      await expect(loader.finish()).rejects.toThrow(says);
    }
    await checkpoint.close();
  } // prettier-ignore
  const checkpoint = await openSafetensors(platform, folder({ 'model.safetensors': put(-65520) }));
  const loader = new WeightLoader(device, checkpoint, floatStorage('f16'));
  await loader.linear('a', 2, 2);
  // As above.
  loader.skip('b');
  await expect(loader.finish()).rejects.toMatchObject({ remedies: [LOAD_AS_F32] });
  await checkpoint.close();
  device.close();
});

test('the loader checks shapes and fails on leftovers', async () => {
  const checkpoint = await openSafetensors(platform, folder({ 'model.safetensors': fileBytes() }));
  const loader = new WeightLoader(undefined as unknown as Device, checkpoint, floatStorage('f32'));
  await expect(loader.data('a', [4])).rejects.toThrow('tensor a has shape [2, 2], expected [4]');
  await expect(loader.data('z', [4])).rejects.toThrow('tensor z is missing');
  await loader.data('a', [2, 2]);
  await expect(loader.finish()).rejects.toThrow('1 tensors this architecture does not use: b');
  // Said to be unused, b is no leftover.
  loader.skip('b');
  await loader.finish();
  expect(loader.parameters).toBe(4);
  await checkpoint.close();
});
