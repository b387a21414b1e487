// out[l, c] = bias[c] + sum_t x[(l + padding - t) / stride, c] * weight[t, c] over the taps t for which the division is exact: a transposed
// convolution with one filter per channel.
//
// x, out [rows, 4 c4] f32; weight [taps][c4] of vec4. One invocation per four channels of an output row. Reference: test/reference/conv.ts.
override WG: u32;
override SPANS: bool;

struct Params {
  rows_unit: u32,
  rows: u32,
  rows_in_unit: u32,
  rows_in: u32,
  c4: u32,
  taps: u32,
  stride: u32,
  padding: u32,
}

@group(0) @binding(0) var<storage, read> x: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read> weight: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read> bias: array<vec4<f32>>;
@group(0) @binding(3) var<storage, read> spans: array<vec4<u32>>;
@group(0) @binding(4) var<storage, read_write> out: array<vec4<f32>>;
@group(0) @binding(5) var<uniform> params: Params;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let i = workgroup_index(group, groups) * WG + lane;
  let row = i / params.c4;
  let span = span_of(group.z);
  if (row >= span_rows(span, params.rows_unit, params.rows)) {
    return;
  }
  let rows_in = span_rows(span, params.rows_in_unit, params.rows_in);
  let c = i % params.c4;
  let position = row + params.padding;
  var sum = bias[c];
  for (var t = position % params.stride; t < params.taps && t <= position; t += params.stride) {
    let m = (position - t) / params.stride;
    if (m < rows_in) {
      sum = fma(x[(span.x * params.rows_in_unit + m) * params.c4 + c], weight[t * params.c4 + c], sum);
    }
  }
  out[span.x * params.rows_unit * params.c4 + i] = sum;
}
