// reduce_rows.wgsl by subgroups of exactly SUBGROUP invocations, with the bits of reduce_subgroup.wgsl.
const PARTS = WG / SUBGROUP;

fn reduce_rows(lane: u32, values: array<f32, ROWS>) -> array<f32, ROWS> {
  var totals = values;
  for (var i = 0u; i < ROWS; i++) {
    let part = subgroupAdd(totals[i]);
    if (lane % SUBGROUP == 0u) {
      sums[i * PARTS + lane / SUBGROUP] = part;
    }
  }
  workgroupBarrier();
  for (var i = 0u; i < ROWS; i++) {
    totals[i] = 0.0;
    for (var part = 0u; part < PARTS; part++) {
      totals[i] += sums[i * PARTS + part];
    }
  }
  workgroupBarrier();
  return totals;
}
