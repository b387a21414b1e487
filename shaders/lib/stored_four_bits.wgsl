// Stored 4-bit codes, 256 per block in groups of 32, two of which share 32 bytes (Q4_K). With HIGH_BITS the fifth bit of a code is bit
// `group` of one of 32 more bytes (Q5_K).
fn codes_at(stored: u32, quad: u32) -> u32 {
  let group = quad >> 3u;
  let within = (quad & 7u) * 4u;
  let codes = (word_from(stored + CODES_AT + (group >> 1u) * 32u + within) >> ((group & 1u) * 4u)) & NIBBLES;
  if (HIGH_BITS == 0u) {
    return codes;
  }
  return codes | (((word_from(stored + HIGH_AT + within) >> group) & ONES) << 4u);
}

// A scale and an offset of six bits each, returned in two bytes. The upper two bits of the last four groups lie in the bytes of the first
// four.
fn group_scales(stored: u32, group: u32) -> u32 {
  let at = stored + SCALES_AT;
  let place = group & 3u;
  let scale = byte_at(at + place);
  let offset = byte_at(at + 4u + place);
  if (group < 4u) {
    return (scale & 63u) | ((offset & 63u) << 8u);
  }
  let low = byte_at(at + 8u + place);
  return (low & 15u) | ((scale >> 2u) & 0x30u) | (((low >> 4u) | ((offset >> 2u) & 0x30u)) << 8u);
}
