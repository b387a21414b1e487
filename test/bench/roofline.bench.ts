/** What the adapter gives at best: memory copy, arithmetic, and the fixed costs of a dispatch, a submission and a readback. */
import type { Device } from '../../engine/gpu/device.ts';
import { activate } from '../../engine/ops/activation.ts';
import { linear } from '../../engine/ops/linear.ts';
import { packLinear } from '../../engine/ops/pack-linear.ts';
import { benchDevice, deviceTime, fixed, printMachine, printTable } from './harness.ts';

/** GB/s of reading and writing once. */
async function copyRate(device: Device, bytes: number): Promise<number> {
  const from = device.tensor('from', 'f32', [bytes / 4]);
  const to = device.tensor('to', 'f32', [bytes / 4]);
  const ms = await deviceTime(device, (rec) => rec.copy(from, to));
  device.destroy(from, to);
  return (2 * bytes) / ms / 1e6;
}

/** GFLOP/s of our best matrix product at a size that fits the caches. */
async function productRate(device: Device, dtype: 'f32' | 'f16'): Promise<number> {
  const [m, k, n] = [512, 1024, 1024];
  const x = device.upload('x', 'f32', [m, k], new Float32Array(m * k).fill(0.5));
  const out = device.tensor('out', 'f32', [m, n]);
  const weight = packLinear(device, 'w', new Float32Array(n * k).fill(0.25), n, k, dtype);
  const ms = await deviceTime(device, (rec) => linear(rec, { x, weight, out }));
  return (2 * m * k * n) / ms / 1e6;
}

/** Microseconds of one tiny dispatch in a long pass: encoding and execution overlap as they do in a step. */
async function dispatchCost(device: Device): Promise<number> {
  const x = device.tensor('x', 'f32', [8]);
  const out = device.tensor('out', 'f32', [8]);
  const count = 500;
  const ms = await deviceTime(device, (rec) => {
    for (let i = 0; i < count; i++) activate(rec, { x, out, activation: 'relu' });
  });
  return (ms * 1000) / count;
}

/** Milliseconds from submitting a tiny step to holding its 4 bytes. */
async function roundTrip(device: Device): Promise<number> {
  const x = device.tensor('x', 'f32', [8]);
  const out = device.tensor('out', 'f32', [8]);
  const samples: number[] = [];
  for (let i = 0; i < 50; i++) {
    const from = performance.now();
    const rec = device.record('round trip');
    activate(rec, { x, out, activation: 'relu' });
    const readback = rec.readback(out, 4);
    rec.submit();
    await readback.data();
    samples.push(performance.now() - from);
  }
  return samples.sort((a, b) => a - b)[25]!;
}

const devices = { 'default toggles': await benchDevice('default'), 'fast toggles': await benchDevice('fast') };
printMachine(devices['fast toggles']);
const rows: string[][] = [];
for (const [name, device] of Object.entries(devices)) {
  rows.push([
    name,
    fixed(await copyRate(device, 4 << 20), 1),
    fixed(await copyRate(device, 64 << 20), 1),
    fixed(await productRate(device, 'f32'), 1),
    fixed(await productRate(device, 'f16'), 1),
    fixed(await dispatchCost(device), 1),
    fixed(await roundTrip(device)),
  ]);
}
printTable(['', 'copy 4 MiB GB/s', 'copy 64 MiB GB/s', 'f32 GFLOP/s', 'f16 weights GFLOP/s', 'dispatch us', 'round trip ms'], rows);
process.exit(0);
