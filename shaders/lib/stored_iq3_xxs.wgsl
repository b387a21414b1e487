// Stored codes of IQ3_XXS: per 4 values the number of a vector; per 32 a word with seven signs of each 8 and the group's scale.
fn codes_at(stored: u32, quad: u32) -> u32 {
  let seven = (word_from(stored + SCALES_AT + (quad >> 3u) * 4u) >> (((quad & 7u) >> 1u) * 7u)) & 127u;
  return grid_codes(byte_at(stored + CODES_AT + quad), four_signs(seven, quad & 1u));
}

fn group_scales(stored: u32, group: u32) -> u32 {
  return 2u * (word_from(stored + SCALES_AT + group * 4u) >> 28u) + 1u;
}
