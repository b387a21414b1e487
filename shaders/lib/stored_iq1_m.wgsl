// Stored codes of IQ1_M: per 8 values the lower eight bits of a vector's number, its upper three at HIGH_AT in a nibble, whose top bit is
// the sign of all. Scales have three bits, four per 16 bits, below a nibble of the block's scale.
fn codes_at(stored: u32, quad: u32) -> u32 {
  let i = quad >> 1u;
  let more = byte_at(stored + HIGH_AT + (i >> 1u)) >> ((i & 1u) * 4u);
  let vector = byte_at(stored + CODES_AT + i) | ((more & 7u) << 8u);
  return grid_codes(vector * 2u + (quad & 1u), select(0u, 15u, (more & 8u) != 0u));
}

fn group_scales(stored: u32, group: u32) -> u32 {
  return 2u * ((half_at(stored + SCALES_AT + (group >> 2u) * 2u) >> ((group & 3u) * 3u)) & 7u) + 1u;
}
