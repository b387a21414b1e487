// Stored 4-bit codes, 256 per block in groups of 32, each as in stored_nibbles.wgsl (IQ4_XS). Scales have six bits, 32 for zero: the upper
// two lie together in 16 bits, the lower four behind them.
fn codes_at(stored: u32, quad: u32) -> u32 {
  let at = stored + CODES_AT + (quad >> 3u) * 16u + (quad & 3u) * 4u;
  return (word_from(at) >> (((quad >> 2u) & 1u) * 4u)) & NIBBLES;
}

fn group_scales(stored: u32, group: u32) -> u32 {
  let low = (byte_at(stored + SCALES_AT + 2u + (group >> 1u)) >> ((group & 1u) * 4u)) & 15u;
  let high = (half_at(stored + SCALES_AT) >> (group * 2u)) & 3u;
  return ((low | (high << 4u)) - 32u) & 0xffu;
}
