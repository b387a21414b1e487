// out[m, n] = act(sum_k x[m, k] * W[n, k] + bias[n]) + residual[m, n], for adapters whose subgroup is a SIMD register of LANES.
//
// As linear_tile.wgsl, but the LANES rows of x of a workgroup are loaded by LANES invocations at once (one gather) and handed round by
// a shuffle with a constant lane, which is a register permute. On lavapipe every load is a gather, uniform or not, so
// this leaves TILE_N + 1 loads for LANES x TILE_N products: 2.8x linear_tile (test/bench/SPEED.md). Same order of sums, same bits.
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

@compute @workgroup_size(LANES)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(subgroup_invocation_id) lane: u32) {
  let first_column = group.x * LANES * TILE_N + lane;
  let first_row = group.y * LANES;
  var column: array<u32, TILE_N>;
  for (var j = 0u; j < TILE_N; j++) {
    column[j] = min(first_column + j * LANES, params.n_weight - 1u);
  }
  let my_row = min(first_row + lane, params.m - 1u) * params.k4;
  var acc: array<array<f32, TILE_N>, LANES>;
  for (var k = 0u; k < params.k4; k++) {
    let mine = x[my_row + k];
    var w: array<vec4<f32>, TILE_N>;
    for (var j = 0u; j < TILE_N; j++) {
      w[j] = unpack_weight(weight[k * params.n_weight + column[j]]);
    }
    for (var i = 0u; i < LANES; i++) {
      let a = subgroupShuffle(mine, i);
      for (var j = 0u; j < TILE_N; j++) {
        acc[i][j] = fma(a.w, w[j].w, fma(a.z, w[j].z, fma(a.y, w[j].y, fma(a.x, w[j].x, acc[i][j]))));
      }
    }
  }
  for (var i = 0u; i < LANES; i++) {
    for (var j = 0u; j < TILE_N; j++) {
      store(first_row + i, first_column + j * LANES, acc[i][j]);
    }
  }
}
