// Reads floats as a file stores them: raw is an array of words with values of SOURCE (0 f32, 1 f16, 2 bf16), two per word for 16-bit types.
// Values are returned as the bits of their f32, by integer arithmetic, so that they do not depend on the adapter. PAIRS: values have 16
// bits, and every quad is two whole words.

// The largest magnitudes that can be stored: 65519, which still rounds down to the largest f16, and the largest f32.
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

// Widens a 16-bit value to the bits of its f32.
fn widen(bits: u32) -> u32 {
  if (SOURCE == 1u) {
    return half_to_single(bits);
  }
  return bits << 16u;
}

fn value_at(element: u32) -> u32 {
  if (SOURCE == 0u) {
    return raw[element];
  }
  return widen((raw[element >> 1u] >> ((element & 1u) * 16u)) & 0xffffu);
}

// Four values from an element on; zeros where fewer, `count`, exist.
fn quad_at(element: u32, count: u32) -> vec4<u32> {
  if (PAIRS) {
    let low = raw[element >> 1u];
    let high = raw[(element >> 1u) + 1u];
    return vec4<u32>(widen(low & 0xffffu), widen(low >> 16u), widen(high & 0xffffu), widen(high >> 16u));
  }
  var values = vec4<u32>(0u);
  for (var j = 0u; j < 4u; j++) {
    if (j < count) {
      values[j] = value_at(element + j);
    }
  }
  return values;
}
