// Counter-based noise: draw `index` of the generator mulberry32 seeded with `seed`, without the draws before it.
fn mulberry(seed: u32, index: u32) -> f32 {
  var t = seed + (index + 1u) * 0x6d2b79f5u;
  let a = (t ^ (t >> 15u)) * (t | 1u);
  t = a ^ (a + (a ^ (a >> 7u)) * (a | 61u));
  return f32(t ^ (t >> 14u)) / 4294967296.0;
}

// Standard normal draw `index` (Box-Muller over draws 2 index and 2 index + 1).
fn normal(seed: u32, index: u32) -> f32 {
  let radius = sqrt(-2.0 * log(max(mulberry(seed, 2u * index), 1e-12)));
  return radius * precise_cos(6.283185307179586 * mulberry(seed, 2u * index + 1u));
}
