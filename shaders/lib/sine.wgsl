// Sine to 1e-7 for |x| up to some thousands; WGSL promises only 2^-11, too coarse for phases and for Snake. x = k pi + r with |r| <= pi/2
// (pi in three parts, the first two short enough for exact products), then the odd Taylor polynomial.
struct Reduced {
  sine: f32,  // sin(r)
  odd: bool,  // k is odd, so sin(x) = -sin(r)
}

fn reduced_sine(x: f32) -> Reduced {
  let k = round(x * 0.318309886183790672);
  // By fma, because a compiler that may reorder sums (Metal's by default) could combine the three products and lose the extra digits.
  let r = fma(k, 8.742278012618954e-8, fma(k, -0.0009677410125732422, fma(k, -3.140625, x)));
  let z = r * r;
  let p = fma(z, fma(z, fma(z, fma(z, fma(z, 1.6059043836821613e-10, -2.5052108385441719e-8), 2.7557319223985891e-6), -1.9841269841269841e-4), 8.3333333333333333e-3), -0.16666666666666667);
  return Reduced(fma(r * z, p, r), (u32(abs(k)) & 1u) == 1u);
}

fn precise_sin(x: f32) -> f32 {
  let reduced = reduced_sine(x);
  return select(reduced.sine, -reduced.sine, reduced.odd);
}

fn precise_cos(x: f32) -> f32 {
  return precise_sin(x + 1.5707963267948966);
}
