// Sums over k of x[first_row + i, k] * W[n, k] of ROWS rows and TILE_N columns per invocation, on adapters whose subgroup is a SIMD
// register of LANES.
//
// As in linear_broadcast.wgsl, but the LANES invocations load LANES quads of one row at once, which are a block of weights along K: on
// lavapipe, where every load is a gather, LANES quads of x cost one load. `columns` are numbers of quads of neighbouring columns. The
// kernel's x_quad(i, row, k) gives quad k of the i-th row; lane `lane` asks only for quads that are `lane` modulo LANES. A block's words
// are unrolled where a load is little code; with buffer loads, an unrolled block would no longer fit into the processor's cache of decoded
// instructions.
struct sums_t {
  columns: array<u32, TILE_N / 4u>,
  blocks: array<blocks_t, TILE_N / 4u>,
  mine: array<vec4<f32>, ROWS>,
  acc: array<array<f32, TILE_N>, ROWS>,
}

// Accumulates the products with one word of each column's block.
fn add_word(sums: ptr<function, sums_t>, b: u32, word: u32) {
  var packed: array<words_t, TILE_N / 4u>;
  for (var j = 0u; j < TILE_N / 4u; j++) {
    packed[j] = words_at(b, word, sums.columns[j]);
  }
  for (var quad = 0u; quad < WORD_QUADS; quad++) {
    var w: array<vec4<f32>, TILE_N>;
    for (var j = 0u; j < TILE_N; j++) {
      w[j] = block_quad(sums.blocks[j / 4u][j % 4u], packed[j / 4u][j % 4u], word, quad);
    }
    for (var i = 0u; i < ROWS; i++) {
      let a = subgroupShuffle(sums.mine[i], word * WORD_QUADS + quad);
      for (var j = 0u; j < TILE_N; j++) {
        sums.acc[i][j] = fma(a.w, w[j].w, fma(a.z, w[j].z, fma(a.y, w[j].y, fma(a.x, w[j].x, sums.acc[i][j]))));
      }
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
    if (WRITTEN_OUT) {
      add_word(&sums, b, 0u);
      add_word(&sums, b, 1u);
      if (BLOCK_WORDS > 2u) {
        add_word(&sums, b, 2u);
        add_word(&sums, b, 3u);
      }
      if (BLOCK_WORDS > 4u) {
        add_word(&sums, b, 4u);
        add_word(&sums, b, 5u);
        add_word(&sums, b, 6u);
        add_word(&sums, b, 7u);
      }
    } else {
      for (var word = 0u; word < block_words(); word++) {
        add_word(&sums, b, word);
      }
    }
  }
  return sums.acc;
}
