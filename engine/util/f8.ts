/** Converts 8-bit floating point (OCP FP8 and MX) to single precision. */

/** Values of the 256 codes of F8_E4M3 (torch.float8_e4m3fn): bias 7, no infinities, NaN if all bits but the sign are set. */
export const F8_E4M3 = tableOf((code) => ((code & 0x7f) === 0x7f ? NaN : small(code, 3, 7)));

/** Values of the 256 codes of F8_E5M2 (torch.float8_e5m2), which is the upper byte of half precision. */
export const F8_E5M2 = tableOf((code) =>
  (code & 0x7c) !== 0x7c ? small(code, 2, 15) : code & 3 ? NaN : code & 0x80 ? -Infinity : Infinity,
);

/** Values of the 256 codes of F8_E8M0 (torch.float8_e8m0fnu), used for scales only: powers of two, and NaN. */
export const F8_E8M0 = tableOf((code) => (code === 0xff ? NaN : 2 ** (code - 127)));

/** Converts codes with one of these tables. */
export function fromF8(codes: Uint8Array, table: Float32Array): Float32Array {
  const out = new Float32Array(codes.length);
  for (let i = 0; i < codes.length; i++) out[i] = table[codes[i]!]!;
  return out;
}

function tableOf(value: (code: number) => number): Float32Array {
  return Float32Array.from({ length: 256 }, (_, code) => value(code));
}

/** Value of a finite code with a sign bit, a biased exponent, and `digits` bits of mantissa. */
function small(code: number, digits: number, bias: number): number {
  const sign = code & 0x80 ? -1 : 1;
  const exponent = (code & 0x7f) >> digits;
  const mantissa = (code & ((1 << digits) - 1)) / (1 << digits);
  return sign * (exponent === 0 ? mantissa * 2 ** (1 - bias) : (1 + mantissa) * 2 ** (exponent - bias));
}
