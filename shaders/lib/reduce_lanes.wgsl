// reduce_subgroup.wgsl where the workgroup is one subgroup: no workgroup memory, and no barrier that would zero it.
fn reduce_sum(lane: u32, value: f32) -> f32 {
  return subgroupAdd(value);
}

fn reduce_max(lane: u32, value: f32) -> f32 {
  return subgroupMax(value);
}
