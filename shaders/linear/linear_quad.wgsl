// out[m, n] = act(sum_k x[m, k] * W[n, k] + bias[n]) + residual[m, n], for adapters whose subgroup is a SIMD register of 4.
//
// A workgroup computes ROWS (1, 4 or 16) rows of 16 columns; an invocation has 4 columns, 4 apart. Rows of x are loaded by the 4
// invocations at once, one each, and handed round (lib/quad.wgsl). Tiles are matrices in variables of their own, because private arrays
// are slow where this runs. 7x linear_broadcast.wgsl on SwiftShader (test/bench/SPEED.md). The sum over k has the same order for all ROWS.
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
}

@group(0) @binding(0) var<storage, read> x: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read> weight: array<weight_t>;
@group(0) @binding(2) var<storage, read> bias: array<f32>;
@group(0) @binding(3) var<storage, read> residual: array<f32>;
@group(0) @binding(4) var<storage, read_write> out: array<f32>;
@group(0) @binding(5) var<uniform> params: Params;

// W[columns, 4 k..] of an invocation: [4 columns x 4 inputs].
fn weights_at(k: u32, columns: vec4<u32>) -> mat4x4<f32> {
  let at = columns + k * params.n_weight;
  return transpose(
    mat4x4<f32>(unpack_weight(weight[at.x]), unpack_weight(weight[at.y]), unpack_weight(weight[at.z]), unpack_weight(weight[at.w])),
  );
}

fn store_row(row: u32, first_column: u32, sums: vec4<f32>) {
  for (var j = 0u; j < 4u; j++) {
    store(row, first_column + j * 4u, sums[j]);
  }
}

fn store_tile(first_row: u32, first_column: u32, sums: mat4x4<f32>) {
  for (var i = 0u; i < 4u; i++) {
    store_row(first_row + i, first_column, sums[i]);
  }
}

@compute @workgroup_size(4)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(subgroup_invocation_id) lane: u32) {
  let first_column = group.x * 16u + lane;
  let first_row = group.y * ROWS;
  let columns = min(vec4<u32>(first_column) + vec4<u32>(0u, 4u, 8u, 12u), vec4<u32>(params.n_weight - 1u));
  if (ROWS == 1u) {
    var sums = vec4<f32>();
    for (var k = 0u; k < params.k4; k++) {
      sums += weights_at(k, columns) * x[first_row * params.k4 + k];
    }
    store_row(first_row, first_column, sums);
    return;
  }
  let rows = min(vec4<u32>(first_row + lane) + vec4<u32>(0u, 4u, 8u, 12u), vec4<u32>(params.m - 1u)) * params.k4;
  // [4 columns x 4 rows] each.
  var sums0 = mat4x4<f32>();
  var sums1 = mat4x4<f32>();
  var sums2 = mat4x4<f32>();
  var sums3 = mat4x4<f32>();
  for (var k = 0u; k < params.k4; k++) {
    let weights = weights_at(k, columns);
    sums0 += weights * all_lanes(x[rows.x + k]);
    if (ROWS == 16u) {
      sums1 += weights * all_lanes(x[rows.y + k]);
      sums2 += weights * all_lanes(x[rows.z + k]);
      sums3 += weights * all_lanes(x[rows.w + k]);
    }
  }
  store_tile(first_row, first_column, sums0);
  if (ROWS == 16u) {
    store_tile(first_row + 4u, first_column, sums1);
    store_tile(first_row + 8u, first_column, sums2);
    store_tile(first_row + 12u, first_column, sums3);
  }
}
