// out[l, c] = x[|l - pad|, c] + y[l, c]: x, reflected by `pad` rows at its start, plus y.
//
// out, y [rows, C], x [rows - pad, C], C = 4 c4. The sequences of a batch begin at the same rows in all three (lib/row_spans.wgsl). One
// invocation per vec4.
override WG: u32;
override SPANS: bool;

struct Params {
  rows_unit: u32,
  rows: u32,
  c4: u32,
  pad: u32,
}

@group(0) @binding(0) var<storage, read> x: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read> y: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read> spans: array<vec4<u32>>;
@group(0) @binding(3) var<storage, read_write> out: array<vec4<f32>>;
@group(0) @binding(4) var<uniform> params: Params;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let i = workgroup_index(group, groups) * WG + lane;
  let row = i / params.c4;
  let span = span_of(group.z);
  if (row >= span_rows(span, params.rows_unit, params.rows)) {
    return;
  }
  let base = span.x * params.rows_unit * params.c4;
  let source = u32(abs(i32(row) - i32(params.pad)));
  out[base + i] = x[base + source * params.c4 + i % params.c4] + y[base + i];
}
