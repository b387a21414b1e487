// out[m, n] = act(sum_k x[m, k] * W[n, k] + bias[n]) + residual[m, n], on adapters whose subgroup is a SIMD register of 4.
//
// A workgroup computes ROWS (1, 4 or 16) rows of 16 columns, or with WIDE 16 rows of 32; an invocation has one or two quads of neighbouring
// columns (lib/quad_floats.wgsl, lib/quad_blocks.wgsl). The 4 invocations load rows of x together, one each, and exchange them
// (lib/quad.wgsl). Tiles are matrices in variables of their own, because private arrays are slow there. 7x linear_broadcast.wgsl on
// SwiftShader (test/bench/SPEED.md). The sum over k has the same order for all ROWS. Reference: test/reference/linear.ts.
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

fn store_row(row: u32, first_column: u32, sums: vec4<f32>) {
  for (var j = 0u; j < 4u; j++) {
    store(row, first_column + j, sums[j]);
  }
}

fn store_tile(first_row: u32, first_column: u32, sums: mat4x4<f32>) {
  for (var i = 0u; i < 4u; i++) {
    store_row(first_row + i, first_column, sums[i]);
  }
}

@compute @workgroup_size(4)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(subgroup_invocation_id) lane: u32) {
  let first_row = group.y * ROWS;
  let wide = ROWS == 16u && WIDE;
  let first_column = select(16u, 32u, wide) * group.x + 4u * lane;
  let columns = min(vec2<u32>(first_column / 4u, first_column / 4u + 4u), vec2<u32>(params.n_weight / 4u - 1u));
  if (ROWS == 1u) {
    store_row(first_row, first_column, row_sums(first_row, columns.x));
    return;
  }
  let rows = min(vec4<u32>(first_row + lane) + vec4<u32>(0u, 4u, 8u, 12u), vec4<u32>(params.m - 1u)) * params.k4;
  let tile = tile_sums(rows, columns);
  store_tile(first_row, first_column, tile.left0);
  if (ROWS == 16u) {
    store_tile(first_row + 4u, first_column, tile.left1);
    store_tile(first_row + 8u, first_column, tile.left2);
    store_tile(first_row + 12u, first_column, tile.left3);
  }
  if (wide) {
    store_tile(first_row, first_column + 16u, tile.right0);
    store_tile(first_row + 4u, first_column + 16u, tile.right1);
    store_tile(first_row + 8u, first_column + 16u, tile.right2);
    store_tile(first_row + 12u, first_column + 16u, tile.right3);
  }
}
