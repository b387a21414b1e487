// out[m, n] = act(sum_k x[m, k] * W[n, k] + bias[n]) + residual[m, n] with int8 activations and int8 or int4 weights (block_t).
//
// x: q [M][K/32] of two vec4<u32> and (scale, sum) a block, from quantize_rows; weight [K/32][N] of block_t, weight_scales [K/32][N] f32.
// Integer dot products inside a block, f32 accumulation over blocks in order of K. A TILE_M x TILE_N register tile an invocation, as linear_tile.wgsl.
// Reference: test/reference/quantize.ts.
override WG: u32;
override ACTIVATION: u32;
override HAS_BIAS: bool;
override HAS_RESIDUAL: bool;

struct Params {
  m: u32,
  n: u32,
  n_weight: u32,
  blocks: u32,
  out_stride: u32,
  out_column: u32,
}

struct Row {
  low: vec4<u32>,
  high: vec4<u32>,
}

@group(0) @binding(0) var<storage, read> x: array<Row>;
@group(0) @binding(1) var<storage, read> x_scales: array<vec2<f32>>;
@group(0) @binding(2) var<storage, read> weight: array<block_t>;
@group(0) @binding(3) var<storage, read> weight_scales: array<f32>;
@group(0) @binding(4) var<storage, read> bias: array<f32>;
@group(0) @binding(5) var<storage, read> residual: array<f32>;
@group(0) @binding(6) var<storage, read_write> out: array<f32>;
@group(0) @binding(7) var<uniform> params: Params;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let first_column = group.x * WG * TILE_N + lane;
  let first_row = group.y * TILE_M;
  var column: array<u32, TILE_N>;
  for (var j = 0u; j < TILE_N; j++) {
    column[j] = min(first_column + j * WG, params.n_weight - 1u);
  }
  var acc: array<array<f32, TILE_N>, TILE_M>;
  for (var b = 0u; b < params.blocks; b++) {
    var w: array<block_t, TILE_N>;
    var w_scale: array<f32, TILE_N>;
    for (var j = 0u; j < TILE_N; j++) {
      w[j] = weight[b * params.n_weight + column[j]];
      w_scale[j] = weight_scales[b * params.n_weight + column[j]];
    }
    for (var i = 0u; i < TILE_M; i++) {
      let at = min(first_row + i, params.m - 1u) * params.blocks + b;
      let a = x[at];
      let s = x_scales[at];
      for (var j = 0u; j < TILE_N; j++) {
        acc[i][j] = fma(block_dot(w[j], a.low, a.high, s.y), s.x * w_scale[j], acc[i][j]);
      }
    }
  }
  for (var i = 0u; i < TILE_M; i++) {
    for (var j = 0u; j < TILE_N; j++) {
      store(first_row + i, first_column + j * WG, acc[i][j]);
    }
  }
}
