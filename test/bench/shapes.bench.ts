/** Our hot kernels at the shapes of the bundled models, on the device alone: where a step's time goes and how far from the roofline. */
import type { Device } from '../../engine/gpu/device.ts';
import type { Recorder } from '../../engine/gpu/recorder.ts';
import { siluMul } from '../../engine/ops/activation.ts';
import { linear, packLinear } from '../../engine/ops/linear.ts';
import type { WeightType } from '../../engine/ops/linear.ts';
import { rmsNorm } from '../../engine/ops/norm.ts';
import { createRng } from '../../engine/util/rng.ts';
import { benchDevice, deviceTime, fixed, loadText, printMachine, printTable } from './harness.ts';

interface Shape {
  readonly name: string;
  readonly flops: number;
  /** Weights and activations, each moved once. */
  readonly bytes: number;
  prepare(device: Device): (rec: Recorder) => void;
}

const rng = createRng(1);
const values = (size: number): Float32Array => Float32Array.from({ length: size }, () => rng.normal() * 0.1);
const BYTES_PER_WEIGHT: Readonly<Record<WeightType, number>> = { f32: 4, f16: 2, q8: 1.125, q4: 0.625 };

function linearShape(what: string, m: number, k: number, n: number, dtype: WeightType): Shape {
  return {
    name: `linear ${dtype} ${what} ${m}x${k}x${n}`,
    flops: 2 * m * k * n,
    bytes: 4 * m * (k + n) + BYTES_PER_WEIGHT[dtype] * k * n,
    prepare(device) {
      const x = device.upload('x', 'f32', [m, k], values(m * k));
      const out = device.tensor('out', 'f32', [m, n]);
      const weight = packLinear(device, 'w', values(n * k), n, k, dtype);
      return (rec) => linear(rec, { x, weight, out });
    },
  };
}

function normShape(rows: number, columns: number): Shape {
  return {
    name: `rms_norm ${rows}x${columns}`,
    flops: 4 * rows * columns,
    bytes: 8 * rows * columns,
    prepare(device) {
      const x = device.upload('x', 'f32', [rows, columns], values(rows * columns));
      const weight = device.upload('w', 'f32', [columns], values(columns));
      const out = device.tensor('out', 'f32', [rows, columns]);
      return (rec) => rmsNorm(rec, { x, weight, out, eps: 1e-5 });
    },
  };
}

function siluMulShape(rows: number, columns: number): Shape {
  return {
    name: `silu_mul ${rows}x${columns}`,
    flops: 5 * rows * columns,
    bytes: 12 * rows * columns,
    prepare(device) {
      const gateUp = device.upload('gate_up', 'f32', [rows, 2 * columns], values(2 * rows * columns));
      const out = device.tensor('out', 'f32', [rows, columns]);
      return (rec) => siluMul(rec, { gateUp, out });
    },
  };
}

const shapes: Shape[] = [];
for (const m of [1, 32, 256]) {
  shapes.push(linearShape('chat qkv', m, 256, 512, 'f16'), linearShape('chat gate_up', m, 256, 1408, 'f16'));
  shapes.push(linearShape('chat down', m, 704, 256, 'f16'), linearShape('chat head', m, 256, 4096, 'f16'));
  shapes.push(normShape(m, 256), siluMulShape(m, 704));
}
for (const dtype of ['f32', 'f16', 'q8', 'q4'] as const) {
  shapes.push(linearShape('0.5B MLP', 1, 896, 4864, dtype), linearShape('0.5B MLP', 128, 896, 4864, dtype));
}
shapes.push(linearShape('whisper qkv', 1500, 256, 768, 'f16'), linearShape('whisper MLP', 1500, 256, 1024, 'f16'));

const device = await benchDevice('fast');
printMachine(device);
const rows: string[][] = [];
for (const { name, flops, bytes, prepare } of shapes) {
  if (!name.includes(process.argv[2] ?? '')) continue;
  const ms = await deviceTime(device, prepare(device));
  rows.push([name, fixed(ms, 3), fixed(flops / ms / 1e6, 1), fixed(bytes / ms / 1e6, 1), loadText()]);
}
printTable(['kernel and shape', 'ms', 'GFLOP/s', 'GB/s', 'load'], rows);
process.exit(0);
