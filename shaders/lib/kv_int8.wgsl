// Four channels of a key or value as signed bytes, the share of a scale times 127. The scale of a position's head lies in one more row of the page
// behind the D / 4 rows of channels. A value's word there is the scale, an f32. A key's has the scale in its lowest 12 bits (8 of exponent, 4 of
// mantissa), and above them signed counts of five bits: whole units of the four channels that are kept apart (kv/rope_kv_store_int8.wgsl).
alias kv_t = u32;

const SCALE_ROWS = 1u;

fn load_kv(value: kv_t) -> vec4<f32> {
  return unpack4x8snorm(value);
}

fn load_scale(value: kv_t) -> f32 {
  return bitcast<f32>(value);
}

fn load_key_scale(value: kv_t) -> f32 {
  return bitcast<f32>((value & 0xfffu) << 19u);
}

fn load_counts(value: kv_t) -> vec4<f32> {
  return vec4<f32>((vec4<i32>(bitcast<i32>(value)) << vec4<u32>(0u, 5u, 10u, 15u)) >> vec4<u32>(27u));
}

// A magnitude as a key's scale: the least of 12 bits that is no smaller.
fn round_key_scale(magnitude: f32) -> f32 {
  return bitcast<f32>((bitcast<u32>(magnitude) + 0x7ffffu) & 0x7ff80000u);
}

fn store_key_word(scale: f32, counts: vec4<f32>) -> kv_t {
  let fields = (vec4<u32>(vec4<i32>(counts)) & vec4<u32>(31u)) << vec4<u32>(27u, 22u, 17u, 12u);
  return fields.x | fields.y | fields.z | fields.w | (bitcast<u32>(scale) >> 19u);
}
