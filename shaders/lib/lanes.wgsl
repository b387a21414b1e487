// Exchange between the LANES invocations of a workgroup, through workgroup memory: each stores a value (give_), then comes one barrier,
// then anyone reads anyone's value (take_). There is room for QUERIES x SLICES query parts, QUERIES numbers and one index per invocation.
var<workgroup> shared_queries: array<vec4<f32>, QUERIES * SLICES * LANES>;
var<workgroup> shared_numbers: array<f32, QUERIES * LANES>;
var<workgroup> shared_indices: array<u32, LANES>;

// LANES from params, so that loops over it are not unrolled: unrolled around barriers they take software adapters a minute to compile.
fn lane_count() -> u32 {
  return params.lanes;
}

fn turns(count: u32) -> u32 {
  return count;
}

fn lanes_barrier() {
  workgroupBarrier();
}

fn give_query(part: u32, lane: u32, value: vec4<f32>) {
  shared_queries[part * LANES + lane] = value;
}

fn take_query(part: u32, from_lane: u32, mine: vec4<f32>) -> vec4<f32> {
  return shared_queries[part * LANES + from_lane];
}

fn give_number(query: u32, lane: u32, value: f32) {
  shared_numbers[query * LANES + lane] = value;
}

fn take_number(query: u32, from_lane: u32, mine: f32) -> f32 {
  return shared_numbers[query * LANES + from_lane];
}

fn give_index(lane: u32, value: u32) {
  shared_indices[lane] = value;
}

fn take_index(from_lane: u32, mine: u32) -> u32 {
  return shared_indices[from_lane];
}
