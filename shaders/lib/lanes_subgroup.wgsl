// lanes.wgsl for a workgroup that is one subgroup: values stay in registers and are exchanged by shuffles. On software adapters a shuffle
// from a constant lane is a register permute.
fn lane_count() -> u32 {
  return LANES;
}

// `count`, computed so that no compiler knows it and unrolls a loop of that length: unrolled buffer loads take lavapipe seconds to compile.
fn turns(count: u32) -> u32 {
  return count * params.lanes / LANES;
}

fn lanes_barrier() {
}

fn give_query(part: u32, lane: u32, value: vec4<f32>) {
}

fn take_query(part: u32, from_lane: u32, mine: vec4<f32>) -> vec4<f32> {
  return subgroupShuffle(mine, from_lane);
}

fn give_number(query: u32, lane: u32, value: f32) {
}

fn take_number(query: u32, from_lane: u32, mine: f32) -> f32 {
  return subgroupShuffle(mine, from_lane);
}

fn give_index(lane: u32, value: u32) {
}

fn take_index(from_lane: u32, mine: u32) -> u32 {
  return subgroupShuffle(mine, from_lane);
}
