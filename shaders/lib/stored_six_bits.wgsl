// Stored 6-bit codes, 256 per block (Q6_K). Of each 128, the low nibbles of 64 bytes are the first 64 and the high nibbles the others; the
// upper two bits lie in 32 more bytes. Scales are signed bytes.
fn codes_at(stored: u32, quad: u32) -> u32 {
  let group = quad >> 2u;
  let quarter = (group >> 1u) & 3u;
  let within = (group & 1u) * 16u + (quad & 3u) * 4u;
  let low = word_from(stored + CODES_AT + (group >> 3u) * 64u + (quarter & 1u) * 32u + within) >> ((quarter >> 1u) * 4u);
  let high = word_from(stored + HIGH_AT + (group >> 3u) * 32u + within) >> (quarter * 2u);
  return (low & NIBBLES) | ((high & PAIRS) << 4u);
}

fn group_scales(stored: u32, group: u32) -> u32 {
  return byte_at(stored + SCALES_AT + group);
}
