// out[m, n] = act(sum_k x[m, k] * W[n, k] + bias[n]) + residual[m, n] of a few rows, for adapters whose subgroup is a SIMD register of LANES.
//
// As linear_broadcast.wgsl, but the LANES invocations load LANES quads of one row at once, which are a block of weights along K: on lavapipe, where a load is a
// gather, x costs a load for LANES quads instead of one for each. ROWS rows a workgroup, TILE_N columns an invocation. Same order of sums, same bits.
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

@compute @workgroup_size(LANES)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(subgroup_invocation_id) lane: u32) {
  let first_columns = group.x * LANES * (TILE_N / 4u) + lane;
  let first_row = group.y * ROWS;
  var columns: array<u32, TILE_N / 4u>;
  for (var j = 0u; j < TILE_N / 4u; j++) {
    columns[j] = min(first_columns + j * LANES, params.n_weight / 4u - 1u);
  }
  var row: array<u32, ROWS>;
  for (var i = 0u; i < ROWS; i++) {
    row[i] = min(first_row + i, params.m - 1u) * params.k4 + lane;
  }
  var acc: array<array<f32, TILE_N>, ROWS>;
  var blocks = array<blocks_t, TILE_N / 4u>();
  for (var b = 0u; b < params.k4 / BLOCK_QUADS; b++) {
    var mine: array<vec4<f32>, ROWS>;
    for (var i = 0u; i < ROWS; i++) {
      mine[i] = x[row[i] + b * BLOCK_QUADS];
    }
    for (var j = 0u; j < TILE_N / 4u; j++) {
      blocks[j] = next_blocks(blocks[j], b, columns[j]);
    }
    for (var word = 0u; word < BLOCK_WORDS; word++) {
      var packed: array<words_t, TILE_N / 4u>;
      for (var j = 0u; j < TILE_N / 4u; j++) {
        packed[j] = words_at(b, word, columns[j]);
      }
      for (var quad = 0u; quad < WORD_QUADS; quad++) {
        var w: array<vec4<f32>, TILE_N>;
        for (var j = 0u; j < TILE_N; j++) {
          w[j] = block_quad(blocks[j / 4u][j % 4u], packed[j / 4u][j % 4u], word, quad);
        }
        for (var i = 0u; i < ROWS; i++) {
          let a = subgroupShuffle(mine[i], word * WORD_QUADS + quad);
          for (var j = 0u; j < TILE_N; j++) {
            acc[i][j] = fma(a.w, w[j].w, fma(a.z, w[j].z, fma(a.y, w[j].y, fma(a.x, w[j].x, acc[i][j]))));
          }
        }
      }
    }
  }
  for (var i = 0u; i < ROWS; i++) {
    for (var j = 0u; j < TILE_N; j++) {
      store(first_row + i, (first_columns + j / 4u * LANES) * 4u + j % 4u, acc[i][j]);
    }
  }
}
