// out[m, n] = act(sum_k x[m, k] * W[n, k] + bias[n]) + residual[m, n] of a few rows, on adapters whose subgroup is a SIMD register of
// LANES.
//
// ROWS rows per workgroup, TILE_N columns per invocation (lib/sums_rows.wgsl, lib/sums_folded.wgsl). Operands, order of sums and bits are
// those of linear_broadcast.wgsl or, where weights are folded (lib/fold.wgsl), of linear_texels.wgsl. Reference: test/reference/linear.ts.
override ACTIVATION: u32;
override HAS_BIAS: bool;
override HAS_RESIDUAL: bool;

struct Params {
  m: u32,
  n: u32,
  n_weight: u32,
  k4: u32,
  out_stride: u32,
  out_column: u32,
  bias_column: u32,
}

@group(0) @binding(0) var<storage, read> x: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read> weight: array<weight_t>;
@group(0) @binding(2) var<storage, read> bias: array<f32>;
@group(0) @binding(3) var<storage, read> residual: array<f32>;
@group(0) @binding(4) var<storage, read_write> out: array<f32>;
@group(0) @binding(5) var<uniform> params: Params;

// Quad k of row `row` of x, for sum_products.
fn x_quad(i: u32, row: u32, k: u32) -> vec4<f32> {
  return x[row * params.k4 + k];
}

@compute @workgroup_size(LANES)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(subgroup_invocation_id) lane: u32) {
  let first_columns = group.x * LANES * (TILE_N / 4u) + lane;
  let first_row = group.y * ROWS;
  var columns: array<u32, TILE_N / 4u>;
  for (var j = 0u; j < TILE_N / 4u; j++) {
    columns[j] = min(first_columns + j * LANES, params.n_weight / 4u - 1u);
  }
  var sums = sum_products(columns, first_row, lane);
  for (var i = 0u; i < ROWS; i++) {
    for (var j = 0u; j < TILE_N; j++) {
      store(first_row + i, (first_columns + j / 4u * LANES) * 4u + j % 4u, sums[i][j]);
    }
  }
}
