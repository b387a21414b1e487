// Four channels of a key or value as stored in a page, and how they widen. See kv_f16.wgsl for the other storage.
alias kv_t = vec4<f32>;

// Elements are stored as they are: no scales (see kv_int8.wgsl).
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
