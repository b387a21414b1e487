// Stored codes of IQ1_S: per 8 values the lower eight bits of a vector's number. Its upper three lie at SCALES_AT in 16 bits per 32 values,
// with the group's scale and, as the top bit, the sign of all.
fn codes_at(stored: u32, quad: u32) -> u32 {
  let i = quad >> 1u;
  let more = half_at(stored + SCALES_AT + (quad >> 3u) * 2u);
  let vector = byte_at(stored + CODES_AT + i) | (((more >> ((i & 3u) * 3u)) & 7u) << 8u);
  return grid_codes(vector * 2u + (quad & 1u), select(0u, 15u, (more & 0x8000u) != 0u));
}

fn group_scales(stored: u32, group: u32) -> u32 {
  return 2u * ((half_at(stored + SCALES_AT + group * 2u) >> 12u) & 7u) + 1u;
}
