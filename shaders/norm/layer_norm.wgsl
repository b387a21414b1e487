// out[t, c] = (x[t, c] - mean_c) / sqrt(var_c + eps) * weight[c] + bias[c]; x, out [T, C]; biased variance in a second
// pass over the row (the one-pass form loses digits). One workgroup a row. Reference: test/reference/norm.ts.
override WG: u32;

struct Params {
  rows: u32,
  columns: u32,
  eps: f32,
}

@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read> weight: array<f32>;
@group(0) @binding(2) var<storage, read> bias: array<f32>;
@group(0) @binding(3) var<storage, read_write> out: array<f32>;
@group(0) @binding(4) var<uniform> params: Params;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let row = workgroup_index(group, groups);
  if (row >= params.rows) {
    return;
  }
  let base = row * params.columns;
  var sum = 0.0;
  for (var c = lane; c < params.columns; c += WG) {
    sum += x[base + c];
  }
  let mean = reduce_sum(lane, sum) / f32(params.columns);
  var squares = 0.0;
  for (var c = lane; c < params.columns; c += WG) {
    let d = x[base + c] - mean;
    squares = fma(d, d, squares);
  }
  let scale = inverseSqrt(reduce_sum(lane, squares) / f32(params.columns) + params.eps);
  for (var c = lane; c < params.columns; c += WG) {
    out[base + c] = (x[base + c] - mean) * scale * weight[c] + bias[c];
  }
}
