// partial = mean and sum of squared deviations of each channel over chunks of `chunk` rows: the first step of instance norm over time.
//
// x [rows, 4 x_stride4] f32; partial [chunks][c4][2] of vec4: mean, then squared deviations. Sequence s of a batch begins at chunk `its
// first row / chunk + s`, so that no two sequences share a chunk. Neighbouring invocations have neighbouring channels. Deviations are taken
// from the chunk's first row, so that a large offset costs no precision. Reference: test/reference/adain.ts.
override WG: u32;
override SPANS: bool;

struct Params {
  rows_unit: u32,
  rows: u32,
  c4: u32,
  x_stride4: u32,
  chunk: u32,
}

@group(0) @binding(0) var<storage, read> x: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read> spans: array<vec4<u32>>;
@group(0) @binding(2) var<storage, read_write> partial: array<vec4<f32>>;
@group(0) @binding(3) var<uniform> params: Params;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let c = group.y * WG + lane;
  let first = group.x * params.chunk;
  let span = span_of(group.z);
  let rows = span_rows(span, params.rows_unit, params.rows);
  if (c >= params.c4 || first >= rows) {
    return;
  }
  let base = span.x * params.rows_unit;
  let last = min(first + params.chunk, rows);
  let pivot = x[(base + first) * params.x_stride4 + c];
  var sum = vec4<f32>();
  var squares = vec4<f32>();
  for (var row = first; row < last; row++) {
    let d = x[(base + row) * params.x_stride4 + c] - pivot;
    sum += d;
    squares = fma(d, d, squares);
  }
  let count = f32(last - first);
  let at = ((base / params.chunk + group.z + group.x) * params.c4 + c) * 2u;
  partial[at] = pivot + sum / count;
  partial[at + 1u] = max(squares - sum * sum / count, vec4<f32>());
}
