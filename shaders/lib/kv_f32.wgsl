// Four channels of a key or value as stored in a page, and how they widen. See kv_f16.wgsl for the other storage.
alias kv_t = vec4<f32>;

fn load_kv(value: kv_t) -> vec4<f32> {
  return value;
}

fn store_kv(value: vec4<f32>) -> kv_t {
  return value;
}
