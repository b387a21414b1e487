// Page elements in f16: four channels of a key or value in two words, which needs no adapter feature. Magnitudes beyond the largest f16 are
// clamped.
alias kv_t = vec2<u32>;

const LARGEST_F16 = 65504.0;
// Rows of scales in a page: none (kv_int8.wgsl has one).
const SCALE_ROWS = 0u;

fn load_kv(value: kv_t) -> vec4<f32> {
  return vec4<f32>(unpack2x16float(value.x), unpack2x16float(value.y));
}

fn store_kv(value: vec4<f32>) -> kv_t {
  let v = clamp(value, vec4<f32>(-LARGEST_F16), vec4<f32>(LARGEST_F16));
  return vec2<u32>(pack2x16float(v.xy), pack2x16float(v.zw));
}

fn load_scale(value: kv_t) -> f32 {
  return 1.0;
}

fn load_key_scale(value: kv_t) -> f32 {
  return 1.0;
}

fn load_counts(value: kv_t) -> vec4<f32> {
  return vec4<f32>();
}
