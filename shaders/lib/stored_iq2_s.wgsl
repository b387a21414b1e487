// Stored codes of IQ2_S: per 8 values the lower eight bits of a vector's number, its upper two at HIGH_AT, and eight signs. Scales are
// nibbles.
fn codes_at(stored: u32, quad: u32) -> u32 {
  let i = quad >> 1u;
  let upper = (byte_at(stored + HIGH_AT + (i >> 2u)) >> ((i & 3u) * 2u)) & 3u;
  let vector = byte_at(stored + CODES_AT + i) | (upper << 8u);
  return grid_codes(vector * 2u + (quad & 1u), byte_at(stored + SIGNS_AT + i) >> ((quad & 1u) * 4u));
}

fn group_scales(stored: u32, group: u32) -> u32 {
  return odd_scale(stored + SCALES_AT, group);
}
