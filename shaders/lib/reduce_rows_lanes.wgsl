// reduce_rows.wgsl for a workgroup that is one subgroup, with the bits of reduce_lanes.wgsl.
fn reduce_rows(lane: u32, values: array<f32, ROWS>) -> array<f32, ROWS> {
  var totals = values;
  for (var i = 0u; i < ROWS; i++) {
    totals[i] = subgroupAdd(totals[i]);
  }
  return totals;
}
