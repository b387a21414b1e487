// Page elements in f32: four channels of a key or value.
alias kv_t = vec4<f32>;

// Rows of scales in a page: none (kv_int8.wgsl has one).
const SCALE_ROWS = 0u;

fn load_kv(value: kv_t) -> vec4<f32> {
  return value;
}

fn store_kv(value: vec4<f32>) -> kv_t {
  return value;
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
