// Reads words, bytes and halves at any byte of a file's data in `raw`, an array of words.
fn word_from(at: u32) -> u32 {
  let i = at >> 2u;
  let shift = (at & 3u) * 8u;
  if (shift == 0u) {
    return raw[i];
  }
  return (raw[i] >> shift) | (raw[i + 1u] << (32u - shift));
}

fn byte_at(at: u32) -> u32 {
  return (raw[at >> 2u] >> ((at & 3u) * 8u)) & 0xffu;
}

// Bits of an f16; `at` is even.
fn half_at(at: u32) -> u32 {
  return (raw[at >> 2u] >> ((at & 3u) * 8u)) & 0xffffu;
}

const NIBBLES = 0x0f0f0f0fu;
const PAIRS = 0x03030303u;
const ONES = 0x01010101u;
