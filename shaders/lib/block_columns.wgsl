// Loads the weight blocks (weight_blocks.wgsl) of four neighbouring columns, one word of each per load, by row_words(word, columns) of
// words_of_columns.wgsl or words_texture.wgsl: on software adapters the number of loads counts more than their width.
alias blocks_t = array<block_t, 4>;
alias words_t = vec4<u32>;

// Loads the next blocks of columns 4 * columns to 4 * columns + 3, in a walk from block 0 on, reusing the words that they share with
// `before`.
fn next_blocks(before: blocks_t, block: u32, columns: u32) -> blocks_t {
  var scales: vec4<u32>;
  if (block % SCALE_BLOCKS == 0u) {
    scales = row_words(scales_word(block), columns);
  }
  var wide: vec4<u32>;
  if (HAS_WIDE == 1u && block % 8u == 0u) {
    wide = row_words(wide_word(block), columns);
  }
  var high: array<vec4<u32>, 2>;
  for (var plane = 0u; plane < HIGH_BITS; plane++) {
    high[plane] = row_words(high_word(block, plane), columns);
  }
  var found = before;
  for (var c = 0u; c < 4u; c++) {
    found[c].high = vec2<u32>(high[0][c], high[1][c]);
    if (block % SCALE_BLOCKS == 0u) {
      found[c].scales = scales[c];
    }
    if (HAS_WIDE == 1u && block % 8u == 0u) {
      found[c].wide = wide_numbers(wide[c]);
    }
    found[c] = scaled(found[c], block);
  }
  return found;
}

fn words_at(block: u32, word: u32, columns: u32) -> words_t {
  return row_words(low_word(block, word), columns);
}
