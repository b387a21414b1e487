// -log(u) of a random number u in (0, 1), accurate near 1. WGSL allows log an absolute error of 2^-21 there, more than the distance of the
// largest u from 1: an adapter may return 0, and a token would have infinite noise. So near 1 this is the series of -log(1 - rest) with
// rest = 1 - u, which is exact; the first omitted term is below the last bit.
fn minus_log(u: f32) -> f32 {
  let rest = 1.0 - u;
  return select(-log(u), rest * fma(rest, fma(rest, 0.33333333, 0.5), 1.0), rest < 0.00390625);
}
