// Counter-based random bits: draw `index` of the generator mulberry32 seeded with `seed`, without the draws before it.
fn random_bits(seed: u32, index: u32) -> u32 {
  var t = seed + (index + 1u) * 0x6d2b79f5u;
  let a = (t ^ (t >> 15u)) * (t | 1u);
  t = a ^ (a + (a ^ (a >> 7u)) * (a | 61u));
  return t ^ (t >> 14u);
}
