// Stored 4-bit codes, 32 per block: the low nibbles of 16 bytes are the first 16, the high nibbles the others. With HIGH_BITS the fifth bit
// of code i is bit i of the word at HIGH_AT.
fn codes_at(stored: u32, quad: u32) -> u32 {
  let codes = (word_from(stored + CODES_AT + (quad & 3u) * 4u) >> ((quad >> 2u) * 4u)) & NIBBLES;
  if (HIGH_BITS == 0u) {
    return codes;
  }
  // Spreads bits 0 to 3 over the lowest bits of four bytes.
  let fifths = ((word_from(stored + HIGH_AT) >> (quad * 4u)) & 15u) * 0x00204081u;
  return codes | ((fifths & ONES) << 4u);
}

fn group_scales(stored: u32, group: u32) -> u32 {
  return 0u;
}
