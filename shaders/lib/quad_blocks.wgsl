// Sums of linear_quad.wgsl over quantised weights, of four neighbouring columns.

const WIDE = false;

// Blocks, and below words, of the four columns.
struct Blocks {
  a: block_t,
  b: block_t,
  c: block_t,
  d: block_t,
}

struct Words {
  a: word_t,
  b: word_t,
  c: word_t,
  d: word_t,
}

fn next_blocks(before: Blocks, block: u32, columns: vec4<u32>) -> Blocks {
  return Blocks(
    next_block(before.a, block, columns.x),
    next_block(before.b, block, columns.y),
    next_block(before.c, block, columns.z),
    next_block(before.d, block, columns.w),
  );
}

fn words_at(block: u32, word: u32, columns: vec4<u32>) -> Words {
  return Words(word_at(block, word, columns.x), word_at(block, word, columns.y), word_at(block, word, columns.z), word_at(block, word, columns.w));
}

// W[columns, 4 k..]: [4 columns x 4 inputs].
fn weights_of(blocks: Blocks, words: Words, word: u32, quad: u32) -> mat4x4<f32> {
  return transpose(
    mat4x4<f32>(
      block_quad(blocks.a, words.a, word, quad),
      block_quad(blocks.b, words.b, word, quad),
      block_quad(blocks.c, words.c, word, quad),
      block_quad(blocks.d, words.d, word, quad),
    ),
  );
}

fn row_sums(row: u32, columns: u32) -> vec4<f32> {
  let four = vec4<u32>(0u, 1u, 2u, 3u) + 4u * columns;
  let count = params.k4 / BLOCK_QUADS;
  let base = row * params.k4;
  var blocks = Blocks();
  var sums = vec4<f32>();
  for (var block = 0u; block < count; block++) {
    blocks = next_blocks(blocks, block, four);
    for (var word = 0u; word < BLOCK_WORDS; word++) {
      let words = words_at(block, word, four);
      for (var quad = 0u; quad < WORD_QUADS; quad++) {
        let k = block * BLOCK_QUADS + word * WORD_QUADS + quad;
        sums += weights_of(blocks, words, word, quad) * x[base + k];
      }
    }
  }
  return sums;
}

fn tile_sums(rows: vec4<u32>, columns: vec2<u32>) -> tile_t {
  let four = vec4<u32>(0u, 1u, 2u, 3u) + 4u * columns.x;
  let count = params.k4 / BLOCK_QUADS;
  var blocks = Blocks();
  var tile = tile_t();
  for (var block = 0u; block < count; block++) {
    blocks = next_blocks(blocks, block, four);
    for (var word = 0u; word < BLOCK_WORDS; word++) {
      let words = words_at(block, word, four);
      for (var quad = 0u; quad < WORD_QUADS; quad++) {
        let k = block * BLOCK_QUADS + word * WORD_QUADS + quad;
        let weights = weights_of(blocks, words, word, quad);
        tile.left0 += weights * all_lanes(x[rows.x + k]);
        if (ROWS == 16u) {
          tile.left1 += weights * all_lanes(x[rows.y + k]);
          tile.left2 += weights * all_lanes(x[rows.z + k]);
          tile.left3 += weights * all_lanes(x[rows.w + k]);
        }
      }
    }
  }
  return tile;
}
