// Rows of a matrix of floats, as a file stores them -> packed[k / 4][out_column + row][k % 4] in f32, or in f16 rounded to nearest even, as
// packLinear lays weights out. All of it is integer arithmetic on the bits, so the result does not depend on the adapter.
// raw: [rows, width] of SOURCE (0 f32, 1 f16, 2 bf16), two a word where they have 16 bits, of which columns [column, column + columns) are taken.
// PAIRS: 16 bits, and every four columns are two whole words. flags[tensor] becomes 1 when a value is not finite or too large for f16.
// An invocation takes a row and QUADS times four columns of it.
override WG: u32;
override SOURCE: u32;
override HALF: bool;
override QUADS: u32;
override PAIRS: bool;

struct Params {
  rows: u32,
  first_row: u32,
  width: u32,
  column: u32,
  columns: u32,
  out_column: u32,
  padded: u32,
  tensor: u32,
}

@group(0) @binding(0) var<storage, read> raw: array<u32>;
@group(0) @binding(1) var<storage, read_write> packed: array<u32>;
@group(0) @binding(2) var<storage, read_write> flags: array<u32>;
@group(0) @binding(3) var<uniform> params: Params;

// The largest magnitudes that may be stored: 65519, which still rounds down to f16's largest number, and the largest of f32.
const LARGEST_HALF = 0x477fef00u;
const LARGEST_SINGLE = 0x7f7fffffu;

fn half_to_single(half: u32) -> u32 {
  let sign = (half & 0x8000u) << 16u;
  let exponent = (half >> 10u) & 31u;
  let mantissa = half & 0x3ffu;
  if (exponent == 31u) {
    return sign | 0x7f800000u | (mantissa << 13u);
  }
  if (exponent != 0u) {
    return sign | ((exponent + 112u) << 23u) | (mantissa << 13u);
  }
  let top = firstLeadingBit(mantissa | 1u);
  let small = ((top + 103u) << 23u) | ((mantissa << (23u - top)) & 0x7fffffu);
  return sign | select(small, 0u, mantissa == 0u);
}

fn single_to_half(single: u32) -> u32 {
  let magnitude = single & 0x7fffffffu;
  let exponent = i32(magnitude >> 23u) - 112;
  let normal = ((magnitude + 0xfffu + ((magnitude >> 13u) & 1u)) >> 13u) - (112u << 10u);
  // Below the normal numbers: the mantissa with its leading one, shifted, and rounded to nearest even.
  let shift = u32(clamp(14 - exponent, 14, 25));
  let full = (magnitude & 0x7fffffu) | 0x800000u;
  let small = (full + (1u << (shift - 1u)) - 1u + ((full >> shift) & 1u)) >> shift;
  return ((single >> 16u) & 0x8000u) | select(normal, small, exponent <= 0);
}

// Bits of 16 as those of the value in f32.
fn widen(bits: u32) -> u32 {
  if (SOURCE == 1u) {
    return half_to_single(bits);
  }
  return bits << 16u;
}

// Bits of an element in f32.
fn value_at(element: u32) -> u32 {
  if (SOURCE == 0u) {
    return raw[element];
  }
  return widen((raw[element >> 1u] >> ((element & 1u) * 16u)) & 0xffffu);
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let row = group.x * WG + lane;
  if (row >= params.rows) {
    return;
  }
  let first = (params.first_row + row) * params.width + params.column;
  let largest = select(LARGEST_SINGLE, LARGEST_HALF, HALF);
  var bad = false;
  for (var i = 0u; i < QUADS; i++) {
    let quad = group.y * QUADS + i;
    if (quad * 4u >= params.columns) {
      break;
    }
    var values = vec4<u32>(0u);
    if (PAIRS) {
      let word = (first >> 1u) + quad * 2u;
      let low = raw[word];
      let high = raw[word + 1u];
      values = vec4<u32>(widen(low & 0xffffu), widen(low >> 16u), widen(high & 0xffffu), widen(high >> 16u));
    } else {
      for (var j = 0u; j < 4u; j++) {
        if (quad * 4u + j < params.columns) {
          values[j] = value_at(first + quad * 4u + j);
        }
      }
    }
    bad = bad || any((values & vec4<u32>(0x7fffffffu)) > vec4<u32>(largest));
    let at = quad * params.padded + params.out_column + row;
    if (HALF) {
      packed[2u * at] = single_to_half(values.x) | (single_to_half(values.y) << 16u);
      packed[2u * at + 1u] = single_to_half(values.z) | (single_to_half(values.w) << 16u);
    } else {
      packed[4u * at] = values.x;
      packed[4u * at + 1u] = values.y;
      packed[4u * at + 2u] = values.z;
      packed[4u * at + 3u] = values.w;
    }
  }
  if (bad) {
    flags[params.tensor] = 1u;
  }
}
