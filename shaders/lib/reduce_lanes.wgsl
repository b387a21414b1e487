// reduce_subgroup.wgsl for a workgroup that is one subgroup: no barriers, and no workgroup memory that would have to be zeroed.
fn reduce_sum(lane: u32, value: f32) -> f32 {
  return subgroupAdd(value);
}

fn reduce_max(lane: u32, value: f32) -> f32 {
  return subgroupMax(value);
}
