// out[t, c] = (x[t, c] - mean_c) / sqrt(var_c + eps) * weight[weight_at + c] + bias[bias_at + c]; x, out [T, C]. The biased variance comes
// from a second pass over the row, because the one-pass form loses precision. One workgroup per row. Sequences of a batch may have weights
// and biases of their own, `style_stride` values apart. Reference: test/reference/norm.ts.
override WG: u32;
override SPANS: bool;

struct Params {
  rows_unit: u32,
  rows: u32,
  columns: u32,
  weight_first: u32,
  bias_first: u32,
  style_stride: u32,
  eps: f32,
}

@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read> weight: array<f32>;
@group(0) @binding(2) var<storage, read> bias: array<f32>;
@group(0) @binding(3) var<storage, read> spans: array<vec4<u32>>;
@group(0) @binding(4) var<storage, read_write> out: array<f32>;
@group(0) @binding(5) var<uniform> params: Params;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let row = workgroup_index(group, groups);
  let span = span_of(group.z);
  if (row >= span_rows(span, params.rows_unit, params.rows)) {
    return;
  }
  let style = group.z * params.style_stride;
  let weight_at = style + params.weight_first;
  let bias_at = style + params.bias_first;
  let base = (span.x * params.rows_unit + row) * params.columns;
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
    out[base + c] = (x[base + c] - mean) * scale * weight[weight_at + c] + bias[bias_at + c];
  }
}
