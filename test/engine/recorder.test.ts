import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { Device } from '../../engine/gpu/device.ts';
import { defineKernel } from '../../engine/gpu/kernel.ts';
import type { Recorder } from '../../engine/gpu/recorder.ts';
import { TEXEL_ROW } from '../../engine/gpu/tensor.ts';
import { add, mul } from '../../engine/ops/elementwise.ts';
import { linear } from '../../engine/ops/linear.ts';
import { packLinear } from '../../engine/ops/pack-linear.ts';
import { createRng } from '../../engine/util/rng.ts';
import { testDevice } from '../support/device.ts';
import { linear as linearReference } from '../reference/linear.ts';
import { expectClose } from '../support/compare.ts';
import { wordsOf } from '../support/words-of.ts';

let device: Device;
beforeAll(async () => {
  device = await testDevice();
});
afterAll(() => device.close());

function step(rec: Recorder, t: ReturnType<typeof tensors>): void {
  add(rec, { a: t.a, b: t.b, out: t.sum });
  mul(rec, { a: t.sum, b: t.b, out: t.product });
}

function tensors() {
  const data = Float32Array.from({ length: 300 }, (_, i) => i / 10);
  return {
    a: device.upload('a', 'f32', [300], data),
    b: device.upload('b', 'f32', [300], data.map((v) => 1 - v)), // prettier-ignore
    sum: device.tensor('sum', 'f32', [300]),
    product: device.tensor('product', 'f32', [300]),
  };
}

test('a step in steady state creates no GPU object and makes one submit', async () => {
  const t = tensors();
  const run = async (): Promise<Float32Array> => {
    const rec = device.record('step');
    step(rec, t);
    const readback = rec.readback(t.product);
    rec.submit();
    return new Float32Array(await readback.data());
  };
  const first = await run();
  const before = { ...device.stats };
  for (let i = 0; i < 5; i++) expect(await run()).toEqual(first);
  const { stats } = device;
  expect([stats.buffers, stats.bindGroups, stats.pipelines]).toEqual([before.buffers, before.bindGroups, before.pipelines]);
  expect(stats.submits - before.submits).toBe(5);
  expect(stats.dispatches - before.dispatches).toBe(10);
  expect(stats.bytesRead - before.bytesRead).toBe(5 * 1200);
  expect(first[4]).toBeCloseTo(0.6, 6);
});

test('a replayed plan computes what the recorded step computes', async () => {
  const t = tensors();
  const rec = device.record('reference');
  step(rec, t);
  rec.submit();
  const expected = await device.read(t.product);
  device.write(t.product, new Float32Array(300));
  const plan = device.capture('plan', (r) => step(r, t));
  const replay = device.record('replay');
  replay.replay(plan);
  replay.submit();
  expect(await device.read(t.product)).toEqual(expected);
});

test('more than 64 KiB of params in one step spill into further chunks', async () => {
  const a = device.upload('a', 'f32', [1], Float32Array.of(1));
  const ping = [device.tensor('ping', 'f32', [1]), device.tensor('pong', 'f32', [1])] as const;
  const rec = device.record('long step');
  const count = 5000;
  for (let i = 0; i < count; i++) add(rec, { a: ping[i % 2]!, b: a, out: ping[(i + 1) % 2]! });
  rec.submit();
  expect((await device.read(ping[count % 2]!))[0]).toBe(count);
});

test('destroying a tensor frees its buffer and its bind groups', async () => {
  const before = device.stats.bufferBytes;
  const t = tensors();
  const rec = device.record('step');
  step(rec, t);
  rec.submit();
  device.destroy(t.a, t.b, t.sum, t.product);
  expect(device.stats.bufferBytes).toBe(before);
  const again = tensors();
  const second = device.record('step');
  step(second, again);
  second.submit();
  expect((await device.read(again.sum))[0]).toBe(1);
  expect(device.errors).toEqual([]);
});

test('words in a texture are those that were copied there, and their bytes are counted until they are freed', async () => {
  if (device.caps.maxTexels === 0) return console.log('skipped: kernels cannot read storage textures here');
  const before = device.stats.bufferBytes;
  // A row of texels and a few of the next.
  const words = Uint32Array.from({ length: 4 * (TEXEL_ROW + 10) }, (_, i) => i * 7919);
  const tensor = device.texels('words', [words.length]);
  expect(device.measure(() => device.texels('words', [words.length]))).toBe(2 * TEXEL_ROW * 16);
  const first = device.upload('first', 'u32', [4 * TEXEL_ROW], words.subarray(0, 4 * TEXEL_ROW));
  const rest = device.upload('rest', 'u32', [40], words.subarray(4 * TEXEL_ROW));
  const rec = device.record('fill');
  rec.fill(first, tensor);
  rec.fill(rest, tensor, TEXEL_ROW);
  rec.submit();
  expect(await wordsOf(device, tensor)).toEqual(words);
  device.destroy(first, rest);
  expect(device.stats.bufferBytes).toBe(before + 2 * TEXEL_ROW * 16);
  const larger = device.texels('more words', [2 * words.length]);
  const moving = device.record('copy');
  moving.copyTexels(tensor, larger);
  moving.submit();
  expect((await wordsOf(device, larger)).subarray(0, words.length)).toEqual(words);
  expect(() => device.record('copy').copyTexels(larger, tensor)).toThrow(/do not fit/);
  device.destroy(tensor, larger);
  expect(device.stats.bufferBytes).toBe(before);
  expect(device.errors).toEqual([]);
});

test('of errors that nobody captures the first are kept, and all are logged', async () => {
  const log = vi.fn();
  const other = await Device.create({ ...device.platform, log });
  for (let i = 0; i < 100; i++) {
    other.gpu.dispatchEvent(Object.assign(new Event('uncapturederror'), { error: new GPUValidationError(`number ${i}`) }));
  }
  expect(log).toHaveBeenCalledTimes(100);
  expect(other.errors).toHaveLength(64);
  expect(other.errors[0]).toBe('number 0');
  other.close();
});

test('a profile has no times of a device that was lost, and fails nothing', async () => {
  const other = await testDevice();
  if (!other.profiler.enable(true)) return console.log('skipped: this adapter has no timestamp queries');
  const a = other.upload('a', 'f32', [1], Float32Array.of(1));
  const out = other.tensor('out', 'f32', [1]);
  const run = (): void => {
    const rec = other.record('step');
    add(rec, { a, b: a, out });
    rec.submit();
  };
  run();
  expect(await other.profiler.report()).toMatchObject([{ count: 1 }]);
  run();
  other.gpu.destroy();
  await other.lost;
  expect(await other.profiler.report()).toEqual([]);
});

test('warm-up reports the line of a kernel that does not compile', async () => {
  const shaders = new Map(await device.platform.shaders());
  shaders.set('broken.wgsl', 'struct Params { n: u32, }\n@group(0) @binding(0) var<uniform> params: Params;\nfn main( {');
  const broken = defineKernel({ file: 'broken.wgsl', bindings: {}, params: { n: 'u32' } });
  const other = await Device.create({ ...device.platform, shaders: async () => shaders });
  await expect(other.warmUp((rec) => rec.dispatch(broken, {}, {}, { n: 1 }, [1]))).rejects.toThrow(/broken does not compile[\s\S]*line 3/);
  other.close();
});

test('warming up with other sizes runs each new kernel once, and what has run not again', async () => {
  const t = tensors();
  const ran = new Set(await device.warmUp((rec) => add(rec, { a: t.a, b: t.b, out: t.sum })));
  const before = device.stats.dispatches;
  const twice = (rec: Recorder): void => [step, step].forEach((record) => record(rec, t));
  expect((await device.warmUp(twice, ran)).size).toBe(2);
  expect(device.stats.dispatches - before).toBe(1);
  expect(ran.size).toBe(2);
});

test('a matrix above the storage-binding limit is split into parts that compute the whole', async () => {
  const [m, n, k] = [3, 200, 64];
  const rng = createRng(1);
  const weight = Float32Array.from({ length: n * k }, () => rng.normal());
  const x = Float32Array.from({ length: m * k }, () => rng.normal());
  const bias = Float32Array.from({ length: n }, () => rng.normal());
  // 64 columns of 64 f32 values a part.
  const small: Device = Object.create(device, { caps: { value: { ...device.caps, maxBindingBytes: 64 * k * 4 } } }) as Device;
  Object.defineProperty(small, 'upload', { value: device.upload.bind(device) });
  const packed = packLinear(small, 'weight', weight, n, k);
  expect(packed.parts.map((part) => part.count)).toEqual([64, 64, 64, 8]);
  const out = device.tensor('out', 'f32', [m, n]);
  const rec = device.record('split');
  const biasTensor = device.upload('bias', 'f32', [n], bias);
  linear(rec, { x: device.upload('x', 'f32', [m, k], x), weight: packed, bias: biasTensor, out });
  rec.submit();
  const expected = linearReference(x, weight, m, n, k).map((v, i) => v + bias[i % n]!);
  expectClose('split linear', await device.read(out), expected, 1e-10);
});

test('the profiler times every dispatch by label', async () => {
  if (!device.profiler.enable(true)) return console.log('skipped: this adapter has no timestamp queries');
  const t = tensors();
  const rec = device.record('profiled');
  step(rec, t);
  await rec.submit().finished();
  device.profiler.enable(false);
  const rows = await device.profiler.report();
  expect(rows.map(({ label, count }) => [label, count] as const).sort(([a], [b]) => (a < b ? -1 : 1))).toEqual([
    ['binary WG=64 OP=0', 1],
    ['binary WG=64 OP=1', 1],
  ]);
});
