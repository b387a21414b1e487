// lane_sums.wgsl for a workgroup that is one subgroup. Partners add the same two numbers, so all lanes get the same bits.
fn sum_lanes(lane: u32, values: ptr<function, array<vec4<f32>, SUMS>>) {
  for (var i = 0u; i < SUMS; i++) {
    var sum = (*values)[i];
    for (var step = 1u; step < LANES; step *= 2u) {
      sum += subgroupShuffleXor(sum, step);
    }
    (*values)[i] = sum;
  }
}
