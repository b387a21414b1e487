// 32 codes of 4 bits: the low nibbles of 16 bytes are the first 16, the high ones the others. Bit i of a word at HIGH_AT, where HIGH_BITS is 1, is a fifth of
// code i.
fn codes_at(stored: u32, quad: u32) -> u32 {
  let codes = (word_from(stored + CODES_AT + (quad & 3u) * 4u) >> ((quad >> 2u) * 4u)) & NIBBLES;
  if (HIGH_BITS == 0u) {
    return codes;
  }
  // Bits 0 to 3 become those of four bytes.
  let fifths = ((word_from(stored + HIGH_AT) >> (quad * 4u)) & 15u) * 0x00204081u;
  return codes | ((fifths & ONES) << 4u);
}

fn group_scales(stored: u32, group: u32) -> u32 {
  return 0u;
}
