// Stored codes that are found in a grid, whose words have four digits of codes, one per byte. A sign is the top bit of a code.
const SIGN_BIT = LOW_BITS + HIGH_BITS - 1u;

// The codes of a word of the grid; bit i of four signs belongs to code i.
fn grid_codes(word: u32, signs: u32) -> u32 {
  return grid[word] | ((((signs & 15u) * 0x00204081u) & ONES) << SIGN_BIT);
}

// Four of eight signs: seven that are stored, and an eighth that makes the number of set ones even.
fn four_signs(seven: u32, upper: u32) -> u32 {
  return (seven | ((countOneBits(seven) & 1u) << 7u)) >> (upper * 4u);
}

// An odd scale in a nibble; the first of two groups has the lower one.
fn odd_scale(at: u32, group: u32) -> u32 {
  return 2u * ((byte_at(at + (group >> 1u)) >> ((group & 1u) * 4u)) & 15u) + 1u;
}
