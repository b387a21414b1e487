// Sums of SUMS vec4s over the LANES invocations of a workgroup (a power of two), through workgroup memory; every invocation gets them. The
// tree is fixed. LANES comes from params, so that loops over it are not unrolled: unrolled around barriers they take software adapters long
// to compile.
var<workgroup> shared_sums: array<vec4<f32>, SUMS * LANES>;

fn sum_lanes(lane: u32, values: ptr<function, array<vec4<f32>, SUMS>>) {
  for (var i = 0u; i < SUMS; i++) {
    shared_sums[i * LANES + lane] = (*values)[i];
  }
  workgroupBarrier();
  for (var step = params.lanes / 2u; step > 0u; step /= 2u) {
    if (lane < step) {
      for (var i = 0u; i < SUMS; i++) {
        shared_sums[i * LANES + lane] += shared_sums[i * LANES + lane + step];
      }
    }
    workgroupBarrier();
  }
  for (var i = 0u; i < SUMS; i++) {
    (*values)[i] = shared_sums[i * LANES];
  }
  workgroupBarrier();
}
