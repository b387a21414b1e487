// Stored 2-bit codes, 256 per block: each 128 lie in 32 bytes, 32 codes per pair of bits (Q2_K). With HIGH_BITS the third bit lies in a
// mask of 32 bytes, bit group / 2 (Q3_K).
fn codes_at(stored: u32, quad: u32) -> u32 {
  let group = quad >> 2u;
  let within = (group & 1u) * 16u + (quad & 3u) * 4u;
  let codes = (word_from(stored + CODES_AT + (group >> 3u) * 32u + within) >> (((group >> 1u) & 3u) * 2u)) & PAIRS;
  if (HIGH_BITS == 0u) {
    return codes;
  }
  return codes | (((word_from(stored + HIGH_AT + within) >> (group >> 1u)) & ONES) << 2u);
}

// Q2_K: a byte with scale and offset. Q3_K: six bits, 32 for zero, the lower four in 8 bytes, the upper two in 4.
fn group_scales(stored: u32, group: u32) -> u32 {
  if (HIGH_BITS == 0u) {
    return byte_at(stored + SCALES_AT + group);
  }
  let low = (byte_at(stored + SCALES_AT + (group & 7u)) >> ((group >> 3u) * 4u)) & 15u;
  let high = (byte_at(stored + SCALES_AT + 8u + (group & 3u)) >> ((group >> 2u) * 2u)) & 3u;
  return ((low | (high << 4u)) - 32u) & 0xffu;
}
