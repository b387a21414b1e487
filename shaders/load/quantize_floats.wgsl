// packed = rows of a float matrix, as a file stores them, quantised to blocks of 32 in Q8_0, or with NIBBLES in Q4_0, byte for byte as
// PyPI's gguf does it, in the layout of pack_blocks.wgsl: from column out_column on, the codes of all blocks, then an f16 scale per block.
//
// What gguf computes in f32 is computed here on the bits, rounded to nearest even where f32 rounds, because division and fused sums differ
// between adapters. raw: [rows, width] (lib/stored_floats.wgsl), of which columns [column, column + columns) are taken. flags[tensor]
// becomes 1 when a value is not finite or too large for f16, as its scale would be. One invocation per row and two blocks, whose scales
// share a word.
override WG: u32;
override SOURCE: u32;
override NIBBLES: bool;
override PAIRS: bool;

struct Params {
  rows: u32,
  first_row: u32,
  width: u32,
  column: u32,
  columns: u32,
  out_column: u32,
  beside: u32,
  row_words: u32,
  tensor: u32,
}

@group(0) @binding(0) var<storage, read> raw: array<u32>;
@group(0) @binding(1) var<storage, read_write> packed: array<u32>;
@group(0) @binding(2) var<storage, read_write> flags: array<u32>;
@group(0) @binding(3) var<uniform> params: Params;

const BLOCK = 32u;
const SIGN = 0x80000000u;
// 8.5 in units of 2^-27.
const HALF_UP = 0x44000000u;

// mantissa * 2^exponent, where mantissa has 24 bits, or is 0, or is 2^24 after rounding up.
struct number_t {
  mantissa: u32,
  exponent: i32,
  infinite: bool,
}

fn number_of(bits: u32) -> number_t {
  let field = (bits >> 23u) & 0xffu;
  let fraction = bits & 0x7fffffu;
  let shift = countLeadingZeros(fraction) - 8u;
  let small = number_t(fraction << (shift & 31u), -149 - i32(shift), false);
  if (field == 0u) {
    return small;
  }
  return number_t(fraction | 0x800000u, i32(field) - 150, false);
}

// 1 if the dropped bits `rest` round the kept bits up, to nearest, ties to even; `half` is half a unit of the kept bits, `more` says that
// further bits are set.
fn rounds_up(kept: u32, rest: u32, half: u32, more: bool) -> u32 {
  return select(0u, 1u, rest > half || (rest == half && (more || (kept & 1u) == 1u)));
}

// Bits of the f32 nearest to mantissa * 2^exponent, mantissa in [2^24, 2^26) or 0; `more`: the exact value is slightly larger.
fn nearest(mantissa: u32, more: bool, exponent: i32) -> u32 {
  if (mantissa == 0u) {
    return 0u;
  }
  let drop = i32(firstLeadingBit(mantissa)) - 23;
  // Denormal numbers have fewer bits.
  let cut = u32(clamp(max(drop, -149 - exponent), 1, 27));
  let kept = mantissa >> cut;
  let up = rounds_up(kept, mantissa & ((1u << cut) - 1u), 1u << (cut - 1u), more);
  return (u32(max(exponent + drop + 149, 0)) << 23u) + kept + up;
}

// 1 / scale.
fn inverse_of(scale: number_t) -> number_t {
  if (scale.mantissa == 0u) {
    return number_t(0u, 0, false);
  }
  var found = number_t(0x800000u, -46 - scale.exponent, false);
  if (scale.mantissa != 0x800000u) {
    // 2^55 / mantissa, a quotient of 32 bits, by long division with digits of 8 bits.
    var quotient = 0x80000000u / scale.mantissa;
    var rest = 0x80000000u - quotient * scale.mantissa;
    for (var i = 0u; i < 3u; i++) {
      rest = rest << 8u;
      let digit = rest / scale.mantissa;
      rest -= digit * scale.mantissa;
      quotient = (quotient << 8u) | digit;
    }
    let kept = quotient >> 8u;
    found = number_t(kept + rounds_up(kept, quotient & 0xffu, 0x80u, rest != 0u), -47 - scale.exponent, false);
  }
  // The largest f32 is (2^24 - 1) * 2^104.
  found.infinite = found.exponent > 104 || (found.exponent == 104 && found.mantissa > 0xffffffu);
  return found;
}

// The product of two numbers.
fn times(a: number_t, b: number_t) -> number_t {
  let middle = (a.mantissa >> 12u) * (b.mantissa & 0xfffu) + (a.mantissa & 0xfffu) * (b.mantissa >> 12u);
  let bottom = (a.mantissa & 0xfffu) * (b.mantissa & 0xfffu) + ((middle & 0xfffu) << 12u);
  let high = (a.mantissa >> 12u) * (b.mantissa >> 12u) + (middle >> 12u) + (bottom >> 24u);
  let low = bottom & 0xffffffu;
  let long = high >= 0x800000u;
  let kept = select((high << 1u) | (low >> 23u), high, long);
  let rest = select((low << 1u) & 0xffffffu, low, long);
  return number_t(kept + rounds_up(kept, rest, 0x800000u, false), a.exponent + b.exponent + select(23, 24, long), false);
}

// The code of a value in Q8_0, 128 for zero: rounded to the nearest, halves away from zero.
fn byte_of(bits: u32, inverse: number_t) -> u32 {
  let value = times(number_of(bits), inverse);
  let shift = -value.exponent;
  if (inverse.infinite || shift > 25) {
    return 128u;
  }
  let cut = u32(max(shift, 1));
  let magnitude = (value.mantissa + (1u << (cut - 1u))) >> cut;
  return select(128u + magnitude, 128u - magnitude, (bits & SIGN) != 0u) & 0xffu;
}

// The code of a value in Q4_0: value + 8.5, rounded to f32, and cut to a whole number.
fn nibble_of(bits: u32, inverse: number_t, inverse_sign: u32) -> u32 {
  let is_less = ((bits ^ inverse_sign) & SIGN) != 0u;
  if (inverse.infinite) {
    return select(15u, 0u, is_less || (bits & ~SIGN) == 0u);
  }
  let value = times(number_of(bits), inverse);
  // Magnitude in units of 2^-27; what is smaller than a unit matters to no result near a whole number.
  let shift = 27 + value.exponent;
  let units = select(value.mantissa >> u32(clamp(-shift, 0, 31)), value.mantissa << u32(clamp(shift, 0, 7)), shift > 0);
  let sum = select(HALF_UP + units, HALF_UP - units, is_less);
  // Half a unit in the last place of the sum in f32: a sum that close below a whole number is rounded to it.
  let half = 1u << (firstLeadingBit(sum) - 24u);
  return min((sum + half) >> 27u, 15u);
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let row = group.x * WG + lane;
  if (row >= params.rows) {
    return;
  }
  let blocks = params.columns / BLOCK;
  let block_words = select(8u, 4u, NIBBLES);
  let column = params.out_column + row;
  var scales = 0u;
  var bad = false;
  for (var half = 0u; half < 2u; half++) {
    let block = group.y * 2u + half;
    if (block >= blocks) {
      break;
    }
    let first = (params.first_row + row) * params.width + params.column + block * BLOCK;
    // The value of largest magnitude, the first of equal ones.
    var extreme = 0u;
    for (var i = 0u; i < 8u; i++) {
      let values = quad_at(first + i * 4u, 4u);
      for (var j = 0u; j < 4u; j++) {
        extreme = select(extreme, values[j], (values[j] & ~SIGN) > (extreme & ~SIGN));
      }
    }
    bad = bad || (extreme & ~SIGN) > LARGEST_HALF;
    let most = number_of(extreme);
    var scale = 0u;
    if (NIBBLES) {
      scale = nearest(most.mantissa << 2u, false, most.exponent - 5) | (~extreme & SIGN);
    } else {
      let shifted = most.mantissa << 8u;
      scale = nearest(shifted / 127u, shifted % 127u != 0u, most.exponent - 8);
    }
    scales |= single_to_half(scale) << (half * 16u);
    let inverse = inverse_of(number_of(scale));
    for (var word = 0u; word < block_words; word++) {
      var codes = 0u;
      if (NIBBLES) {
        let low = quad_at(first + word * 8u, 4u);
        let high = quad_at(first + word * 8u + 4u, 4u);
        for (var j = 0u; j < 4u; j++) {
          codes |= (nibble_of(low[j], inverse, scale) | (nibble_of(high[j], inverse, scale) << 4u)) << (j * 8u);
        }
      } else {
        let values = quad_at(first + word * 4u, 4u);
        for (var j = 0u; j < 4u; j++) {
          codes |= byte_of(values[j], inverse) << (j * 8u);
        }
      }
      packed[word_place(block * block_words + word, column)] = codes;
    }
  }
  packed[word_place(blocks * block_words + group.y, column)] = scales;
  if (bad) {
    flags[params.tensor] = 1u;
  }
}
