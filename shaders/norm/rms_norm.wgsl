// out[t, c] = scale * (x[t, c] / sqrt(mean_c(x[t, c]^2) + eps) * weight[c] (+ residual[t, c])); x, residual, out [T, C]. One workgroup per
// row. Reference: test/reference/norm.ts.
override WG: u32;
override HAS_RESIDUAL: bool;

struct Params {
  rows: u32,
  columns: u32,
  eps: f32,
  scale: f32,
}

@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read> weight: array<f32>;
@group(0) @binding(2) var<storage, read> residual: array<f32>;
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
    let v = x[base + c];
    sum = fma(v, v, sum);
  }
  let inverse = inverseSqrt(reduce_sum(lane, sum) / f32(params.columns) + params.eps);
  for (var c = lane; c < params.columns; c += WG) {
    let normed = x[base + c] * inverse * weight[c];
    if (HAS_RESIDUAL) {
      out[base + c] = (residual[base + c] + normed) * params.scale;
    } else {
      out[base + c] = normed * params.scale;
    }
  }
}
