// Stored codes of IQ2_XXS: per 32 values four numbers of vectors of 8, then a word with seven signs of each and the group's scale.
fn codes_at(stored: u32, quad: u32) -> u32 {
  let group = (quad >> 3u) * 8u;
  let vector = (quad & 7u) >> 1u;
  let seven = (word_from(stored + SCALES_AT + group) >> (vector * 7u)) & 127u;
  return grid_codes(byte_at(stored + CODES_AT + group + vector) * 2u + (quad & 1u), four_signs(seven, quad & 1u));
}

fn group_scales(stored: u32, group: u32) -> u32 {
  return 2u * (word_from(stored + SCALES_AT + group * 8u) >> 28u) + 1u;
}
