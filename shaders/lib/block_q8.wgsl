// A block of 32 signed int8 weights along K: word i holds k = 4 i .. 4 i + 3.
struct block_t {
  low: vec4<u32>,
  high: vec4<u32>,
}

// sum_k w[k] * x[k] over a block; x quantised to int8 (low: k < 16, high: k >= 16), x_sum = sum_k x[k].
fn block_dot(w: block_t, low: vec4<u32>, high: vec4<u32>, x_sum: f32) -> f32 {
  let a = dot4I8Packed(w.low.x, low.x) + dot4I8Packed(w.low.y, low.y) + dot4I8Packed(w.low.z, low.z) + dot4I8Packed(w.low.w, low.w);
  let b = dot4I8Packed(w.high.x, high.x) + dot4I8Packed(w.high.y, high.y) + dot4I8Packed(w.high.z, high.z) + dot4I8Packed(w.high.w, high.w);
  return f32(a + b);
}
