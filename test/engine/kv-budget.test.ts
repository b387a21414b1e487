import { expect, test } from 'vitest';
import { resolveConfig } from '../../engine/config.ts';
import type { Device } from '../../engine/gpu/device.ts';
import { kvPageCount } from '../../engine/runner/kv-budget.ts';

/** 2 layers x 2 sides x 16 tokens x 2 heads x 64 channels x 2 bytes: 4 KiB a page and buffer, 16 KiB a page in all. */
const SHAPE = { layers: 2, kvHeads: 2, headDim: 64, pageSize: 16, dtype: 'f16' } as const;
const MIB = 2 ** 20;

const device = (used: number, { software = false, maxBindingBytes = 2 ** 31 } = {}): Device =>
  ({ caps: { software, maxBindingBytes }, stats: { bufferBytes: used } }) as unknown as Device;

test('pages are the configured share of the memory, less what is allocated', () => {
  const config = resolveConfig({ deviceMemory: 100 * MIB, memFractionStatic: 0.5 });
  expect(kvPageCount(device(10 * MIB), SHAPE, config, 32768)).toBe((40 * MIB) / 16384);
});

test('never more than the running sequences can use, or than one binding holds', () => {
  const config = resolveConfig({ maxRunningRequests: 3 });
  expect(kvPageCount(device(0), SHAPE, config, 1000)).toBe(3 * 63);
  expect(kvPageCount(device(0, { maxBindingBytes: 4096 * 50 }), SHAPE, resolveConfig({}), 32768)).toBe(50);
});

test('without a known memory a software adapter gives 256 MiB', () => {
  expect(kvPageCount(device(0, { software: true }), SHAPE, resolveConfig({}), 32768)).toBe((256 * MIB) / 16384);
});

test('too little memory is an error with the numbers', () => {
  const config = resolveConfig({ deviceMemory: 10 * MIB, memFractionStatic: 1 });
  expect(() => kvPageCount(device(10 * MIB), SHAPE, config, 100)).toThrow(/0 bytes are left .* 4 pages take 65536/);
});
