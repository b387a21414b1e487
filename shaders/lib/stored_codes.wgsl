// 32 codes of 8 bits; signed ones become codes with 128 for zero where scales are halves (Q8_0).
fn codes_at(stored: u32, quad: u32) -> u32 {
  return word_from(stored + CODES_AT + quad * 4u) ^ select(0u, 0x80808080u, ZERO == 128u);
}

fn group_scales(stored: u32, group: u32) -> u32 {
  return 0u;
}
