// out[m, n] = act(sum_k x[m, k] * W[n, k] + bias[n]) + residual[m, n] of ROWS rows (1 to 8) on a GPU, by split-K within a workgroup: SLICES
// groups of LANES invocations share TILE_N * LANES columns and take turns with the chunks of K (lib/sums_split.wgsl). x [ROWS, 4 k4] f32,
// weight floats or blocks, out as lib/linear_store.wgsl stores it. Reference: test/reference/linear.ts.
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

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) index: u32) {
  let first_column = group.x * COLUMNS;
  var column: array<u32, TILE_N>;
  for (var j = 0u; j < TILE_N; j++) {
    column[j] = min(first_column + j * LANES + index % LANES, params.n_weight - 1u);
  }
  var total = sum_products(column, 0u, index);
  for (var i = 0u; i < OWN; i++) {
    let output = index + i * WG;
    if (output < OUTPUTS) {
      store(output / COLUMNS, first_column + output % COLUMNS, total[i]);
    }
  }
}
