// Stored 4-bit codes, 64 per block in groups of 16 (NVFP4): per group 8 bytes, whose low nibbles are the first 8 codes.
fn codes_at(stored: u32, quad: u32) -> u32 {
  let at = stored + CODES_AT + (quad >> 2u) * 8u + (quad & 1u) * 4u;
  return (word_from(at) >> (((quad >> 1u) & 1u) * 4u)) & NIBBLES;
}

fn group_scales(stored: u32, group: u32) -> u32 {
  return 0u;
}
