/** Measures what an adapter achieves with the engine's own kernels, to choose adapters and to distribute layers over them. */
import type { AdapterInfo } from '../api.ts';
import { Device } from '../gpu/device.ts';
import { deviceMemory } from '../gpu/memory.ts';
import type { DeviceMemory } from '../gpu/memory.ts';
import type { Recorder } from '../gpu/recorder.ts';
import { forGPU } from '../ops/few-rows.ts';
import { linear, productKey } from '../ops/linear.ts';
import { productShapes } from '../ops/product-shapes.ts';
import type { LinearWeight } from '../ops/weight.ts';
import type { Platform } from '../platform/platform.ts';

export interface AdapterSpeed {
  /** GB of f16 weights read per second by matrix-vector products, which bounds decoding of one chat. */
  readonly gigabytesPerSecond: number;
  /** GFLOP per second of matrix-matrix products, which bounds prompts and batches. */
  readonly gigaflops: number;
  /** Milliseconds of an upload, a submission and a readback of 16 KiB: the least cost of an exchange with another adapter. */
  readonly roundTripMs: number;
}

export interface AdapterReport {
  readonly info: AdapterInfo;
  readonly speed: AdapterSpeed;
}

/** Sizes [n, k] and [rows, n, k] of the measured products: small enough for a software adapter, large enough to fill a GPU. */
const SIZES = {
  software: { vector: [4096, 2048], matrix: [256, 1024, 1024] },
  hardware: { vector: [16384, 4096], matrix: [2048, 4096, 4096] },
} as const;
const BUDGET_MS = 700;

/** Opens an adapter (by part of its name; default: the platform's best), measures it and closes it. */
export async function probeAdapter(platform: Platform, name?: string): Promise<AdapterReport> {
  const device = await Device.create(platform, name === undefined ? {} : { name });
  try {
    return { info: device.info, speed: await measureSpeed(device) };
  } finally {
    device.close();
  }
}

/** How much memory an adapter has for the engine, and where that number comes from; `given`, in bytes, is the operator's own and takes precedence. */
export async function probeMemory(
  platform: Platform,
  name?: string,
  given?: number,
): Promise<DeviceMemory & { readonly info: AdapterInfo }> {
  const device = await Device.create(platform, name === undefined ? {} : { name });
  try {
    return { ...(await deviceMemory(device, given)), info: device.info };
  } finally {
    device.close();
  }
}

/** Measures an open device, which takes about two seconds. Frees what it allocates. */
export async function measureSpeed(device: Device): Promise<AdapterSpeed> {
  const { vector, matrix } = device.caps.software ? SIZES.software : SIZES.hardware;
  const vectorSeconds = await secondsOfLinear(device, 1, vector[0], vector[1]);
  const [rows, n, k] = matrix;
  const matrixSeconds = await secondsOfLinear(device, rows, n, k);
  return {
    gigabytesPerSecond: (vector[0] * vector[1] * 2) / vectorSeconds / 1e9,
    gigaflops: (2 * rows * n * k) / matrixSeconds / 1e9,
    roundTripMs: await roundTrip(device),
  };
}

/** Shortest time in seconds of a product of [rows, k] by f16 weights [n, k]; on a GPU, over all workgroup shapes. All values are zero, which takes as long as any others. */
async function secondsOfLinear(device: Device, rows: number, n: number, k: number): Promise<number> {
  const x = device.tensor('measured x', 'f32', [rows, k]);
  const out = device.tensor('measured out', 'f32', [rows, n]);
  const stored = device.tensor('measured weight', 'f16', [k / 4, n, 4]);
  const parts = [{ dtype: 'f16', place: 'buffer', weight: stored, first: 0, count: n, padded: n }] as const;
  const weight: LinearWeight = { inFeatures: k, outFeatures: n, parts };
  const run = async (times: number): Promise<number> => {
    const rec = device.record('measure');
    for (let i = 0; i < times; i++) linear(rec, { x, weight, out });
    const started = performance.now();
    await rec.submit().finished();
    return (performance.now() - started) / 1000 / times;
  };
  const key = productKey('f16', rows, k, n);
  const shapes = forGPU(device.caps) ? productShapes(rows, k / 4).map(({ name }) => name) : [''];
  const before = device.tuned.get(key);
  let best = Infinity;
  for (const shape of shapes) {
    device.tuned.set(key, shape);
    await device.warmUp((rec: Recorder) => linear(rec, { x, weight, out }));
    // A submission takes some 50 ms, so that waiting for it does not show.
    const times = Math.min(1000, Math.max(1, Math.round(0.05 / (await run(1)))));
    for (const end = performance.now() + BUDGET_MS / shapes.length; performance.now() < end;) best = Math.min(best, await run(times));
  }
  if (before === undefined) device.tuned.delete(key);
  else device.tuned.set(key, before);
  device.destroy(x, out, stored);
  return best;
}

async function roundTrip(device: Device): Promise<number> {
  const values = new Float32Array(4096);
  const tensor = device.tensor('measured exchange', 'f32', [values.length]);
  const times: number[] = [];
  for (let i = 0; i < 50; i++) {
    const started = performance.now();
    device.write(tensor, values);
    const rec = device.record('exchange');
    const read = rec.readback(tensor);
    rec.submit();
    await read.data();
    times.push(performance.now() - started);
  }
  device.destroy(tensor);
  return times.sort((a, b) => a - b)[times.length >> 1]!;
}
