/** The arithmetic of block-quantised linear layers in f64: what the kernel must give up to the order of sums. */
import { BLOCK, quantizeBlock } from '../../engine/ops/quantized-linear.ts';
import type { QuantizedType } from '../../engine/ops/quantized-linear.ts';

/** Rows [rows, k] -> the values that their quantised form stands for. */
export function dequantizedWeights(data: Float32Array, rows: number, k: number, type: QuantizedType): Float64Array {
  const out = new Float64Array(rows * k);
  const q = new Int32Array(BLOCK);
  for (let r = 0; r < rows; r++) {
    for (let from = 0; from < k; from += BLOCK) {
      const size = Math.min(BLOCK, k - from);
      const scale = Math.fround(quantizeBlock(data, r * k + from, size, type, q));
      for (let i = 0; i < size; i++) out[r * k + from + i] = (q[i]! - (type === 'q4' ? 8 : 0)) * scale;
    }
  }
  return out;
}

/** Activations after rounding to int8 in blocks, as quantize_rows.wgsl does (f32 scale, ties to even). */
export function dequantizedRows(x: Float32Array, rows: number, k: number): Float64Array {
  const out = new Float64Array(rows * k);
  for (let r = 0; r < rows; r++) {
    for (let from = r * k; from < (r + 1) * k; from += BLOCK) {
      const size = Math.min(BLOCK, (r + 1) * k - from);
      let largest = 0;
      for (let i = 0; i < size; i++) largest = Math.max(largest, Math.abs(x[from + i]!));
      const scale = Math.fround(largest / 127);
      const inverse = largest === 0 ? 0 : Math.fround(1 / scale);
      for (let i = 0; i < size; i++) out[from + i] = roundTiesToEven(Math.fround(x[from + i]! * inverse)) * scale;
    }
  }
  return out;
}

function roundTiesToEven(value: number): number {
  const floor = Math.floor(value);
  const rest = value - floor;
  if (rest !== 0.5) return Math.round(value);
  return floor % 2 === 0 ? floor : floor + 1;
}
