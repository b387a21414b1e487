// Counter-based noise, uniform in [0, 1): draw `index` of the generator of lib/random_bits.wgsl.
fn mulberry(seed: u32, index: u32) -> f32 {
  return f32(random_bits(seed, index)) / 4294967296.0;
}

// Standard normal draw `index` (Box-Muller over draws 2 index and 2 index + 1).
fn normal(seed: u32, index: u32) -> f32 {
  // The max with 0, because an adapter's log of a number near 1 may be positive, and the square root of a negative number is NaN.
  let radius = sqrt(max(-2.0 * log(max(mulberry(seed, 2u * index), 1e-12)), 0.0));
  return radius * precise_cos(6.283185307179586 * mulberry(seed, 2u * index + 1u));
}
