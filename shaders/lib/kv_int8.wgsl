// Four channels of a key or value as signed bytes, the share of the largest magnitude in the head times 127. That magnitude, an f32, is the scale of
// a position's head: it lies in one more row of the page behind the D / 4 rows of channels.
alias kv_t = u32;

const SCALE_ROWS = 1u;

fn load_kv(value: kv_t) -> vec4<f32> {
  return unpack4x8snorm(value);
}

fn load_scale(value: kv_t) -> f32 {
  return bitcast<f32>(value);
}
