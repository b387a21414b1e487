// out[m, n] = act(sum_k x[m, k] * W[n, k] + bias[n]) + residual[m, n] of many rows, on adapters whose subgroup is a SIMD register of LANES.
//
// Operands as in linear_tile.wgsl. LANES rows of x are loaded by LANES invocations at once (one gather) and exchanged by shuffles from a
// constant lane, which are register permutes. On lavapipe every load is a gather, uniform or not, so TILE_N + ROW_BLOCKS loads make
// ROW_BLOCKS x LANES x TILE_N products: 2.8x linear_tile with 1 block, 3.2x with 2 (test/bench/SPEED.md). The columns of an invocation are
// quads of neighbours, so that one load of quantised weights gives a word of each. Same order of sums as linear_tile.wgsl, same bits.
// Reference: test/reference/linear.ts.
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

// Sums by row and column, in memory, so that a loop can store them: unrolled stores take four times as long to compile as everything else.
// Room for 16 rows, because the compiler unrolls a loop over a shorter array.
var<private> made: array<f32, 16u * TILE_N>;

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
        var w: array<vec4<f32>, TILE_N>;
        for (var j = 0u; j < TILE_N; j++) {
          w[j] = block_quad(blocks[j / 4u][j % 4u], packed[j / 4u][j % 4u], word, quad);
        }
        for (var r = 0u; r < ROW_BLOCKS; r++) {
          let mine = x[row[r] + k];
          for (var i = 0u; i < LANES; i++) {
            let a = subgroupShuffle(mine, i);
            for (var j = 0u; j < TILE_N; j++) {
              let sum = acc[r * LANES + i][j];
              acc[r * LANES + i][j] = fma(a.w, w[j].w, fma(a.z, w[j].z, fma(a.y, w[j].y, fma(a.x, w[j].x, sum))));
            }
          }
        }
      }
    }
  }
  for (var i = 0u; i < LANES * ROW_BLOCKS; i++) {
    for (var j = 0u; j < TILE_N; j++) {
      made[i * TILE_N + j] = acc[i][j];
    }
  }
  for (var at = 0u; at < TILE_N * min(LANES * ROW_BLOCKS, params.m - first_row); at++) {
    let j = at % TILE_N;
    store(first_row + at / TILE_N, (first_columns + j / 4u * LANES) * 4u + j % 4u, made[at]);
  }
}
