// Stores quads of weights in `packed`, from bits of f32, as f32, or with HALF as f16, rounded to nearest even.

// Whether one of four values cannot be stored: not finite, or with HALF too large for f16.
fn is_bad(values: vec4<u32>) -> bool {
  return any((values & vec4<u32>(0x7fffffffu)) > vec4<u32>(select(LARGEST_SINGLE, LARGEST_HALF, HALF)));
}

fn store_quad(at: u32, values: vec4<u32>) {
  if (HALF) {
    packed[2u * at] = single_to_half(values.x) | (single_to_half(values.y) << 16u);
    packed[2u * at + 1u] = single_to_half(values.z) | (single_to_half(values.w) << 16u);
  } else {
    packed[4u * at] = values.x;
    packed[4u * at + 1u] = values.y;
    packed[4u * at + 2u] = values.z;
    packed[4u * at + 3u] = values.w;
  }
}
