// Sum and maximum over a workgroup of WG invocations, by subgroups of exactly SUBGROUP; same interface as reduce.wgsl.
var<workgroup> reduce_scratch: array<f32, WG / SUBGROUP>;

fn reduce_sum(lane: u32, value: f32) -> f32 {
  let part = subgroupAdd(value);
  if (lane % SUBGROUP == 0u) {
    reduce_scratch[lane / SUBGROUP] = part;
  }
  workgroupBarrier();
  var total = 0.0;
  for (var i = 0u; i < WG / SUBGROUP; i++) {
    total += reduce_scratch[i];
  }
  workgroupBarrier();
  return total;
}

fn reduce_max(lane: u32, value: f32) -> f32 {
  let part = subgroupMax(value);
  if (lane % SUBGROUP == 0u) {
    reduce_scratch[lane / SUBGROUP] = part;
  }
  workgroupBarrier();
  var largest = part;
  for (var i = 0u; i < WG / SUBGROUP; i++) {
    largest = max(largest, reduce_scratch[i]);
  }
  workgroupBarrier();
  return largest;
}
