// Sums over a workgroup of ROWS numbers per invocation, each with the bits of reduce.wgsl, at the cost of one reduction's barriers. Uses
// the workgroup memory of sums_split.wgsl, which must be free at that time.
fn reduce_rows(lane: u32, values: array<f32, ROWS>) -> array<f32, ROWS> {
  var totals = values;
  for (var i = 0u; i < ROWS; i++) {
    sums[i * WG + lane] = totals[i];
  }
  workgroupBarrier();
  for (var step = WG / 2u; step > 0u; step /= 2u) {
    if (lane < step) {
      for (var i = 0u; i < ROWS; i++) {
        sums[i * WG + lane] += sums[i * WG + lane + step];
      }
    }
    workgroupBarrier();
  }
  for (var i = 0u; i < ROWS; i++) {
    totals[i] = sums[i * WG];
  }
  workgroupBarrier();
  return totals;
}
