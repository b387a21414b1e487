// Stored codes of IQ2_XS: per 8 values a number of a vector in 9 bits and seven signs. Scales are nibbles.
fn codes_at(stored: u32, quad: u32) -> u32 {
  let vector = half_at(stored + CODES_AT + (quad & 62u));
  return grid_codes((vector & 511u) * 2u + (quad & 1u), four_signs(vector >> 9u, quad & 1u));
}

fn group_scales(stored: u32, group: u32) -> u32 {
  return odd_scale(stored + SCALES_AT, group);
}
