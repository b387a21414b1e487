// stats[head, s] = (mean, 1 / standard deviation) of weights[head, t, s] over the rows t; 0 in place of 1 / 0. weights [H, max rows,
// positions], of which the first `rows` rows and `columns` positions are used. The variance is the biased one, from a second pass. One
// invocation per (s, head). Reference: test/reference/alignment.ts.
override WG: u32;

struct Params {
  rows: u32,
  columns: u32,
  row_stride: u32,
  head_stride: u32,
}

@group(0) @binding(0) var<storage, read> weights: array<f32>;
@group(0) @binding(1) var<storage, read_write> stats: array<vec2<f32>>;
@group(0) @binding(2) var<uniform> params: Params;

@compute @workgroup_size(WG)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
  let s = id.x;
  if (s >= params.columns) {
    return;
  }
  let at = id.y * params.head_stride + s;
  var sum = 0.0;
  for (var t = 0u; t < params.rows; t++) {
    sum += weights[at + t * params.row_stride];
  }
  let mean = sum / f32(params.rows);
  var squares = 0.0;
  for (var t = 0u; t < params.rows; t++) {
    let d = weights[at + t * params.row_stride] - mean;
    squares = fma(d, d, squares);
  }
  let deviation = sqrt(squares / f32(params.rows));
  stats[id.y * params.row_stride + s] = vec2<f32>(mean, select(1.0 / deviation, 0.0, deviation == 0.0));
}
