// out[m, n] = act(sum_k x[m, k] * W[n, k] + bias[n]) + residual[m, n] with int8 activations and int8 or int4 weights (block_t).
//
// x: q [M][K/32] of two vec4<u32> and (scale, sum) a block, from quantize_rows; weight [K/32][N] of block_t, weight_scales [K/32][N] f32.
// Integer dot products inside a block, f32 accumulation over blocks in order of K. Rows handed round by shuffle, as linear_broadcast.wgsl.
// Reference: test/reference/quantize.ts.
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

@compute @workgroup_size(LANES)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(subgroup_invocation_id) lane: u32) {
  let first_column = group.x * LANES * TILE_N + lane;
  let first_row = group.y * LANES;
  var column: array<u32, TILE_N>;
  for (var j = 0u; j < TILE_N; j++) {
    column[j] = min(first_column + j * LANES, params.n_weight - 1u);
  }
  let my_row = min(first_row + lane, params.m - 1u) * params.blocks;
  var acc: array<array<f32, TILE_N>, LANES>;
  for (var b = 0u; b < params.blocks; b++) {
    let mine = x[my_row + b];
    let my_scale = x_scales[my_row + b];
    var w: array<block_t, TILE_N>;
    var w_scale: array<f32, TILE_N>;
    for (var j = 0u; j < TILE_N; j++) {
      w[j] = weight[b * params.n_weight + column[j]];
      w_scale[j] = weight_scales[b * params.n_weight + column[j]];
    }
    for (var i = 0u; i < LANES; i++) {
      let low = subgroupShuffle(mine.low, i);
      let high = subgroupShuffle(mine.high, i);
      let s = subgroupShuffle(my_scale, i);
      for (var j = 0u; j < TILE_N; j++) {
        acc[i][j] = fma(block_dot(w[j], low, high, s.y), s.x * w_scale[j], acc[i][j]);
      }
    }
  }
  for (var i = 0u; i < LANES; i++) {
    for (var j = 0u; j < TILE_N; j++) {
      store(first_row + i, first_column + j * LANES, acc[i][j]);
    }
  }
}
