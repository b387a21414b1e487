// Stored 8-bit codes, 32 per block. Where scales are f16 (Q8_0), signed codes become unsigned ones with 128 for zero.
fn codes_at(stored: u32, quad: u32) -> u32 {
  return word_from(stored + CODES_AT + quad * 4u) ^ select(0u, 0x80808080u, ZERO == 128u);
}

fn group_scales(stored: u32, group: u32) -> u32 {
  return 0u;
}
