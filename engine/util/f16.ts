/** Converts between IEEE 754 half and single precision, since Node 20 has no Float16Array. */

const BITS = new Uint32Array(1);
const FLOAT = new Float32Array(BITS.buffer);

/** Rounds a number to half precision, to nearest even, and returns its bits; overflow becomes infinity. */
export function f32ToF16Bits(value: number): number {
  FLOAT[0] = value;
  const x = BITS[0]!;
  const sign = (x >>> 16) & 0x8000;
  const exponent = (x >>> 23) & 0xff;
  const mantissa = x & 0x7fffff;
  if (exponent === 0xff) return sign | 0x7c00 | (mantissa ? 0x200 : 0);
  const e = exponent - 112;
  if (e >= 31) return sign | 0x7c00;
  if (e <= 0) {
    if (e < -10) return sign;
    const full = mantissa | 0x800000;
    const shift = 14 - e;
    const half = full >>> shift;
    const rest = full & ((1 << shift) - 1);
    const middle = 1 << (shift - 1);
    return sign | (half + (rest > middle || (rest === middle && half & 1) ? 1 : 0));
  }
  const half = (e << 10) | (mantissa >>> 13);
  const rest = mantissa & 0x1fff;
  return sign | (half + (rest > 0x1000 || (rest === 0x1000 && half & 1) ? 1 : 0));
}

/** Value of half-precision bits. */
export function f16BitsToF32(bits: number): number {
  const sign = bits & 0x8000 ? -1 : 1;
  const exponent = (bits >>> 10) & 0x1f;
  const mantissa = bits & 0x3ff;
  if (exponent === 0) return sign * mantissa * 2 ** -24;
  if (exponent === 31) return mantissa ? NaN : sign * Infinity;
  return sign * (1 + mantissa / 1024) * 2 ** (exponent - 15);
}

/** Rounds every value to half precision and returns the bits. */
export function toF16(values: ArrayLike<number>): Uint16Array {
  const out = new Uint16Array(values.length);
  for (let i = 0; i < values.length; i++) out[i] = f32ToF16Bits(values[i]!);
  return out;
}

let table: Float32Array | undefined;

/** Values of all 65,536 half-precision bit patterns; with this table, loading a checkpoint is memory-bound. */
export function f16Table(): Float32Array {
  return (table ??= Float32Array.from({ length: 65536 }, (_, bits) => f16BitsToF32(bits)));
}

/** Converts half-precision bits to single precision. */
export function fromF16(bits: Uint16Array): Float32Array {
  const halves = f16Table();
  const out = new Float32Array(bits.length);
  for (let i = 0; i < bits.length; i++) out[i] = halves[bits[i]!]!;
  return out;
}

/** Converts bfloat16 bits to single precision. */
export function fromBF16(bits: Uint16Array): Float32Array {
  const wide = new Uint32Array(bits.length);
  for (let i = 0; i < bits.length; i++) wide[i] = bits[i]! << 16;
  return new Float32Array(wide.buffer);
}
