// Page elements in int8: four channels of a key or value as signed bytes, value / scale * 127. The scale of a position's head lies in one
// more row of the page, behind the D / 4 rows of channels. For a value that word is the scale, an f32. For a key its lowest 12 bits are the
// scale (8 of exponent, 4 of mantissa), and the bits above are four signed five-bit counts: whole units of the outlier channels
// (kv/rope_kv_store_int8.wgsl).
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

// Rounds a magnitude up to the next scale that 12 bits hold.
fn round_key_scale(magnitude: f32) -> f32 {
  return bitcast<f32>((bitcast<u32>(magnitude) + 0x7ffffu) & 0x7ff80000u);
}

fn store_key_word(scale: f32, counts: vec4<f32>) -> kv_t {
  let fields = (vec4<u32>(vec4<i32>(counts)) & vec4<u32>(31u)) << vec4<u32>(27u, 22u, 17u, 12u);
  return fields.x | fields.y | fields.z | fields.w | (bitcast<u32>(scale) >> 19u);
}
