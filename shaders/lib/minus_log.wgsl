// -log(u) of a random number u in (0, 1). WGSL lets log be wrong by 2^-21 near 1, which is more than the largest u are away from it: an adapter may give 0 for them, and
// a token would have noise without end. So near 1 it is the series of -log(1 - rest), whose next term is below the last bit; 1 - u is exact there.
fn minus_log(u: f32) -> f32 {
  let rest = 1.0 - u;
  return select(-log(u), rest * fma(rest, fma(rest, 0.33333333, 0.5), 1.0), rest < 0.00390625);
}
