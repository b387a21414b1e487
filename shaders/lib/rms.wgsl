// 1 / sqrt(mean(v^2) + eps) of `columns` values that the kernel's value_at gives, from `base` on, summed by the first `lanes` invocations of the workgroup. All of
// them get it. The others of a wider workgroup add zeros, so the bits are those of a workgroup of `lanes`.
fn inverse_rms(lane: u32, lanes: u32, base: u32, columns: u32, eps: f32) -> f32 {
  var sum = 0.0;
  for (var c = select(columns, lane, lane < lanes); c < columns; c += lanes) {
    let v = value_at(base + c);
    sum = fma(v, v, sum);
  }
  return inverseSqrt(reduce_sum(lane, sum) / f32(columns) + eps);
}
