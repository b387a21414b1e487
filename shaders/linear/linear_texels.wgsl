// out[m, n] = act(sum_k x[m, k] * W[n, k] + bias[n]) + residual[m, n] of many rows: linear_broadcast.wgsl with x in a storage texture, four
// values per texel, row by row, 512 texels per row of the texture (ops/texels.ts).
//
// Lavapipe loads a texel for 8 lanes with a fraction of the instructions of four words from a buffer, by a call that keeps no registers, so
// all loads of a quad of K stand before its products. Texels of x are f32 where those of weights are u32, so that lavapipe loads them by
// different functions: the processor prefetches by the address of the load instruction, and alternating loads of x and weights through one
// instruction would hide both patterns. Sums and bits are those of linear_rows.wgsl, folded (lib/fold.wgsl) or not. Reference:
// test/reference/linear.ts.
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

@group(0) @binding(0) var x: texture_storage_2d<rgba32float, read>;
@group(0) @binding(1) var<storage, read> weight: array<weight_t>;
@group(0) @binding(2) var<storage, read> bias: array<f32>;
@group(0) @binding(3) var<storage, read> residual: array<f32>;
@group(0) @binding(4) var<storage, read_write> out: array<f32>;
@group(0) @binding(5) var<uniform> params: Params;

// Sums by row and column, in memory, so that a loop can store them (linear_broadcast.wgsl).
var<private> made: array<f32, 24u * TILE_N>;

@compute @workgroup_size(LANES)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(subgroup_invocation_id) lane: u32) {
  let first_columns = group.x * LANES * (TILE_N / 4u) + lane;
  let first_row = group.y * LANES * ROW_BLOCKS;
  var columns: array<u32, TILE_N / 4u>;
  for (var j = 0u; j < TILE_N / 4u; j++) {
    columns[j] = min(first_columns + j * LANES, params.n_weight / 4u - 1u);
  }
  var row: array<u32, ROW_BLOCKS>;
  for (var r = 0u; r < ROW_BLOCKS; r++) {
    row[r] = min(first_row + r * LANES + lane, params.m - 1u) * params.k4;
  }
  var acc: array<array<f32, TILE_N>, LANES * ROW_BLOCKS>;
  var blocks = array<blocks_t, TILE_N / 4u>();
  for (var b = 0u; b < params.k4 / BLOCK_QUADS; b++) {
    var total = array<f32, ROW_BLOCKS>();
    for (var j = 0u; j < TILE_N / 4u; j++) {
      blocks[j] = next_blocks(blocks[j], b, columns[j]);
    }
    for (var word = 0u; word < BLOCK_WORDS; word++) {
      var packed: array<words_t, TILE_N / 4u>;
      for (var j = 0u; j < TILE_N / 4u; j++) {
        packed[j] = words_at(b, word, columns[j]);
      }
      for (var quad = 0u; quad < WORD_QUADS; quad++) {
        let k = b * BLOCK_QUADS + word * WORD_QUADS + quad;
        var mine: array<vec4<f32>, ROW_BLOCKS>;
        for (var r = 0u; r < ROW_BLOCKS; r++) {
          let at = row[r] + k;
          mine[r] = textureLoad(x, vec2<u32>(at % 512u, at / 512u));
        }
        var w: array<vec4<f32>, TILE_N>;
        for (var j = 0u; j < TILE_N; j++) {
          w[j] = factor_quad(blocks[j / 4u][j % 4u], packed[j / 4u][j % 4u], word, quad);
        }
        for (var r = 0u; r < ROW_BLOCKS; r++) {
          total[r] += quad_total(mine[r]);
          for (var i = 0u; i < LANES; i++) {
            let a = subgroupShuffle(factor_of(mine[r], quad), i);
            for (var j = 0u; j < TILE_N; j++) {
              let sum = acc[r * LANES + i][j];
              acc[r * LANES + i][j] = fma(a.w, w[j].w, fma(a.z, w[j].z, fma(a.y, w[j].y, fma(a.x, w[j].x, sum))));
            }
          }
        }
      }
    }
    if (FOLDED) {
      for (var i = 0u; i < LANES * ROW_BLOCKS; i++) {
        let of_row = subgroupShuffle(total[i / LANES], i % LANES);
        for (var j = 0u; j < TILE_N; j++) {
          made[i * TILE_N + j] = folded(made[i * TILE_N + j], acc[i][j], blocks[j / 4u][j % 4u], of_row);
          acc[i][j] = 0.0;
        }
      }
    }
  }
  if (!FOLDED) {
    for (var i = 0u; i < LANES * ROW_BLOCKS; i++) {
      for (var j = 0u; j < TILE_N; j++) {
        made[i * TILE_N + j] = acc[i][j];
      }
    }
  }
  for (var at = 0u; at < TILE_N * min(LANES * ROW_BLOCKS, params.m - first_row); at++) {
    let j = at % TILE_N;
    store(first_row + at / TILE_N, (first_columns + j / 4u * LANES) * 4u + j % 4u, made[at]);
  }
}
