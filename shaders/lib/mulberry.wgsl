// Counter-based noise, uniform in [0, 1): draw `index` of the generator of lib/random_bits.wgsl.
fn mulberry(seed: u32, index: u32) -> f32 {
  return f32(random_bits(seed, index)) / 4294967296.0;
}

// Standard normal draw `index` (Box-Muller over draws 2 index and 2 index + 1).
fn normal(seed: u32, index: u32) -> f32 {
  // Of a number next to 1 an adapter's log may be above 0, and the root of what is below 0 no number.
  let radius = sqrt(max(-2.0 * log(max(mulberry(seed, 2u * index), 1e-12)), 0.0));
  return radius * precise_cos(6.283185307179586 * mulberry(seed, 2u * index + 1u));
}
