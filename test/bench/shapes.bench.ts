/** Our hot kernels at the shapes of the bundled models, on the device alone: where a step's time goes and how far from the roofline. */
import type { Device } from '../../engine/gpu/device.ts';
import type { Recorder } from '../../engine/gpu/recorder.ts';
import { gateMul } from '../../engine/ops/activation.ts';
import { linear } from '../../engine/ops/linear.ts';
import { packLinear } from '../../engine/ops/pack-linear.ts';
import { BLOCK_FORMATS } from '../../engine/weights/block-types.ts';
import { isBlockType, matrixBytes } from '../../engine/weights/storage.ts';
import type { WeightType } from '../../engine/weights/storage.ts';
import type { LinearWeight } from '../../engine/ops/weight.ts';
import { rmsNorm } from '../../engine/ops/norm.ts';
import { createRng } from '../../engine/util/rng.ts';
import { benchDevice, deviceTime, fixed, loadText, printMachine, printTable } from './harness.ts';
import { packStored } from '../support/pack-stored.ts';

interface Shape {
  readonly name: string;
  readonly flops: number;
  /** Weights and activations, each moved once. */
  readonly bytes: number;
  prepare(device: Device): (rec: Recorder) => void;
}

const rng = createRng(1);
const values = (size: number): Float32Array => Float32Array.from({ length: size }, () => rng.normal() * 0.1);

/** A weight matrix of values that do not matter: for blocks any bytes whose scales are numbers. */
function anyWeight(device: Device, k: number, n: number, dtype: WeightType): LinearWeight {
  if (!isBlockType(dtype)) return packLinear(device, 'w', values(n * k), n, k, dtype);
  const format = BLOCK_FORMATS[dtype];
  return packStored(device, 'w', new Uint8Array((n * k * format.bytes) / format.values).fill(0x2a), n, k, dtype);
}

function linearShape(what: string, m: number, k: number, n: number, dtype: WeightType): Shape {
  return {
    name: `linear ${dtype} ${what} ${m}x${k}x${n}`,
    flops: 2 * m * k * n,
    bytes: 4 * m * (k + n) + matrixBytes(dtype, n, k),
    prepare(device) {
      const x = device.upload('x', 'f32', [m, k], values(m * k));
      const out = device.tensor('out', 'f32', [m, n]);
      const weight = anyWeight(device, k, n, dtype);
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

function gateMulShape(rows: number, columns: number): Shape {
  return {
    name: `gate_mul ${rows}x${columns}`,
    flops: 5 * rows * columns,
    bytes: 12 * rows * columns,
    prepare(device) {
      const gateUp = device.upload('gate_up', 'f32', [rows, 2 * columns], values(2 * rows * columns));
      const out = device.tensor('out', 'f32', [rows, columns]);
      return (rec) => gateMul(rec, { gateUp, out, activation: 'silu' });
    },
  };
}

const shapes: Shape[] = [];
for (const m of [1, 32, 256]) {
  shapes.push(linearShape('chat qkv', m, 256, 512, 'f16'), linearShape('chat gate_up', m, 256, 1408, 'f16'));
  shapes.push(linearShape('chat down', m, 704, 256, 'f16'), linearShape('chat head', m, 256, 4096, 'f16'));
  shapes.push(normShape(m, 256), gateMulShape(m, 704));
}
for (const dtype of ['f16', 'Q8_0', 'Q6_K', 'Q5_0', 'Q4_0', 'Q4_K'] as const) {
  for (const m of [1, 4, 32]) shapes.push(linearShape('1 B', m, 1024, 4096, dtype));
}
for (const dtype of ['f32', 'f16', 'Q8_0', 'Q4_0'] as const) {
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
