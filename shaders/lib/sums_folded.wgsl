// Sums over k of x[first_row + i, k] * W[n, k] as in sums_rows.wgsl, for codes that are multiplied where they lie and whose sum is scaled
// once per block (fold.wgsl): two thirds of the instructions of dequantising each weight. All loads of a block stand before its products,
// because on lavapipe a texture load is a call that keeps no registers.
struct sums_t {
  columns: array<u32, TILE_N / 4u>,
  blocks: array<blocks_t, TILE_N / 4u>,
  packed: array<array<words_t, BLOCK_WORDS>, TILE_N / 4u>,
  mine: array<vec4<f32>, ROWS>,
  total: array<f32, ROWS>,
  acc: array<array<f32, TILE_N>, ROWS>,
}

// Accumulates the products with one block of each column.
fn add_block(sums: ptr<function, sums_t>) {
  var sum = array<array<f32, TILE_N>, ROWS>();
  for (var word = 0u; word < BLOCK_WORDS; word++) {
    for (var quad = 0u; quad < WORD_QUADS; quad++) {
      for (var i = 0u; i < ROWS; i++) {
        let a = subgroupShuffle(sums.mine[i], word * WORD_QUADS + quad);
        for (var c = 0u; c < TILE_N; c++) {
          let w = factor_quad(sums.blocks[c / 4u][c % 4u], sums.packed[c / 4u][word][c % 4u], word, quad);
          sum[i][c] = fma(a.w, w.w, fma(a.z, w.z, fma(a.y, w.y, fma(a.x, w.x, sum[i][c]))));
        }
      }
    }
  }
  for (var i = 0u; i < ROWS; i++) {
    for (var c = 0u; c < TILE_N; c++) {
      sums.acc[i][c] = folded(sums.acc[i][c], sum[i][c], sums.blocks[c / 4u][c % 4u], sums.total[i]);
    }
  }
}

fn sum_products(of_columns: array<u32, TILE_N / 4u>, first_row: u32, lane: u32) -> array<array<f32, TILE_N>, ROWS> {
  // Copied to a var, because not every WGSL compiler can index a parameter by a variable.
  var sums = sums_t();
  sums.columns = of_columns;
  for (var b = 0u; b < params.k4 / BLOCK_QUADS; b++) {
    for (var i = 0u; i < ROWS; i++) {
      sums.mine[i] = x_quad(i, min(first_row + i, params.m - 1u), b * BLOCK_QUADS + lane);
    }
    for (var j = 0u; j < TILE_N / 4u; j++) {
      sums.blocks[j] = next_blocks(sums.blocks[j], b, sums.columns[j]);
    }
    for (var word = 0u; word < BLOCK_WORDS; word++) {
      for (var j = 0u; j < TILE_N / 4u; j++) {
        sums.packed[j][word] = words_at(b, word, sums.columns[j]);
      }
    }
    for (var i = 0u; i < ROWS; i++) {
      let quad = quad_total(sums.mine[i]);
      sums.total[i] = 0.0;
      for (var q = 0u; q < BLOCK_QUADS; q++) {
        sums.total[i] += subgroupShuffle(quad, q);
      }
      sums.mine[i] = factor_of(sums.mine[i], lane % WORD_QUADS);
    }
    add_block(&sums);
  }
  return sums.acc;
}
