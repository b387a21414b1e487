// Sum and maximum over a workgroup of WG invocations (a power of two), through workgroup memory; every invocation gets the result. The tree
// is fixed, so equal inputs give equal bits.
var<workgroup> reduce_scratch: array<f32, WG>;

fn reduce_sum(lane: u32, value: f32) -> f32 {
  reduce_scratch[lane] = value;
  workgroupBarrier();
  for (var step = WG / 2u; step > 0u; step /= 2u) {
    if (lane < step) {
      reduce_scratch[lane] += reduce_scratch[lane + step];
    }
    workgroupBarrier();
  }
  let total = reduce_scratch[0];
  workgroupBarrier();
  return total;
}

fn reduce_max(lane: u32, value: f32) -> f32 {
  reduce_scratch[lane] = value;
  workgroupBarrier();
  for (var step = WG / 2u; step > 0u; step /= 2u) {
    if (lane < step) {
      reduce_scratch[lane] = max(reduce_scratch[lane], reduce_scratch[lane + step]);
    }
    workgroupBarrier();
  }
  let largest = reduce_scratch[0];
  workgroupBarrier();
  return largest;
}
