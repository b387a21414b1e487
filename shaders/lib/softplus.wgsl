// log(1 + exp(x)); for small exp(-|x|) by the series of log1p, because 1 + exp(-|x|) would round most of it away.
fn softplus(x: f32) -> f32 {
  let y = exp(-abs(x));
  let log1p = select(log(1.0 + y), y * (1.0 - y * (0.5 - y * (1.0 / 3.0 - 0.25 * y))), y < 0.03);
  return max(x, 0.0) + log1p;
}
