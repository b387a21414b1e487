// Stored codes of IQ3_S: per 4 values the lower eight bits of a vector's number, its ninth at HIGH_AT; per 8 values eight signs. Scales are
// nibbles.
fn codes_at(stored: u32, quad: u32) -> u32 {
  let ninth = (byte_at(stored + HIGH_AT + (quad >> 3u)) >> (quad & 7u)) & 1u;
  let signs = byte_at(stored + SIGNS_AT + (quad >> 1u)) >> ((quad & 1u) * 4u);
  return grid_codes(byte_at(stored + CODES_AT + quad) | (ninth << 8u), signs);
}

fn group_scales(stored: u32, group: u32) -> u32 {
  return odd_scale(stored + SCALES_AT, group);
}
