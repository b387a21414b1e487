// A block of 32 weights of 4 bits along K, stored as w + 8: in word i the low nibbles are k = 8 i .. 8 i + 3 and the high nibbles
// k = 8 i + 4 .. 8 i + 7, so that each half is an operand of dot4I8Packed without shuffling.
alias block_t = vec4<u32>;

// sum_k w[k] * x[k] over a block; the stored offset of 8 leaves through x_sum = sum_k x[k].
fn block_dot(w: block_t, low: vec4<u32>, high: vec4<u32>, x_sum: f32) -> f32 {
  let even = w & vec4<u32>(0x0f0f0f0fu);
  let odd = (w >> vec4<u32>(4u)) & vec4<u32>(0x0f0f0f0fu);
  let a = dot4I8Packed(even.x, low.x) + dot4I8Packed(odd.x, low.y) + dot4I8Packed(even.y, low.z) + dot4I8Packed(odd.y, low.w);
  let b = dot4I8Packed(even.z, high.x) + dot4I8Packed(odd.z, high.y) + dot4I8Packed(even.w, high.z) + dot4I8Packed(odd.w, high.w);
  return f32(a + b) - 8.0 * x_sum;
}
