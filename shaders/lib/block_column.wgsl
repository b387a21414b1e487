// Loads weight_blocks.wgsl's blocks of one column, by row_word(word, column) of words_of_column.wgsl or words_texture.wgsl.

fn load_high(found: block_t, block: u32, column: u32) -> block_t {
  var loaded = found;
  if (HIGH_BITS > 0u) {
    loaded.high.x = row_word(high_word(block, 0u), column);
  }
  if (HIGH_BITS > 1u) {
    loaded.high.y = row_word(high_word(block, 1u), column);
  }
  return loaded;
}

// Any block.
fn block_at(block: u32, column: u32) -> block_t {
  var found = load_high(block_t(), block, column);
  found.scales = row_word(scales_word(block), column);
  if (HAS_WIDE == 1u) {
    found.wide = unpack2x16float(row_word(wide_word(block), column));
  }
  return scaled(found, block);
}

// The block after `before`, the first being 0: loads what is new.
fn next_block(before: block_t, block: u32, column: u32) -> block_t {
  var found = load_high(before, block, column);
  if (block % SCALE_BLOCKS == 0u) {
    found.scales = row_word(scales_word(block), column);
  }
  if (HAS_WIDE == 1u && block % 8u == 0u) {
    found.wide = unpack2x16float(row_word(wide_word(block), column));
  }
  return scaled(found, block);
}

fn word_at(block: u32, word: u32, column: u32) -> word_t {
  return row_word(low_word(block, word), column);
}
