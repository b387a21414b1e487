// The sums over k of x[first_row + i, k] * W[n, k] of ROWS rows and TILE_N columns an invocation, for adapters whose subgroup is a SIMD register of LANES.
//
// As linear_broadcast.wgsl, but the LANES invocations load LANES quads of one row at once, which are a block of weights along K: on lavapipe, where a load is a
// gather, x costs a load for LANES quads instead of one for each. `columns` are fours of columns beside each other. The kernel's x_quad(i, row, k) gives quad k
// of row i of these, `lane` asking for the quads that are `lane` modulo LANES only.
fn sum_products(of_columns: array<u32, TILE_N / 4u>, first_row: u32, lane: u32) -> array<array<f32, TILE_N>, ROWS> {
  // A value that is indexed by a variable has to be in one.
  var columns = of_columns;
  var acc = array<array<f32, TILE_N>, ROWS>();
  var blocks = array<blocks_t, TILE_N / 4u>();
  for (var b = 0u; b < params.k4 / BLOCK_QUADS; b++) {
    var mine: array<vec4<f32>, ROWS>;
    for (var i = 0u; i < ROWS; i++) {
      mine[i] = x_quad(i, min(first_row + i, params.m - 1u), b * BLOCK_QUADS + lane);
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
  return acc;
}
