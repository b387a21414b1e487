// Loads the weight blocks (weight_blocks.wgsl) of one column, by row_word(word, column) of words_of_column.wgsl or words_texture.wgsl.

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

// Loaded words of a block, not unpacked yet, so that nothing waits for the loads.
struct raw_t {
  high: vec2<u32>,
  scales: u32,
  wide: u32,
}

fn raw_block(block: u32, column: u32) -> raw_t {
  var raw = raw_t(load_high(block_t(), block, column).high, row_word(scales_word(block), column), 0u);
  if (HAS_WIDE == 1u) {
    raw.wide = row_word(wide_word(block), column);
  }
  return raw;
}

// Unpacks a loaded block.
fn opened(raw: raw_t, block: u32) -> block_t {
  var found = block_t();
  found.high = raw.high;
  found.scales = raw.scales;
  if (HAS_WIDE == 1u) {
    found.wide = wide_numbers(raw.wide);
  }
  return scaled(found, block);
}

// Loads any block.
fn block_at(block: u32, column: u32) -> block_t {
  return opened(raw_block(block, column), block);
}

// Loads the next block of a walk from block 0 on, reusing the words that it shares with `before`.
fn next_block(before: block_t, block: u32, column: u32) -> block_t {
  var found = load_high(before, block, column);
  if (block % SCALE_BLOCKS == 0u) {
    found.scales = row_word(scales_word(block), column);
  }
  if (HAS_WIDE == 1u && block % 8u == 0u) {
    found.wide = wide_numbers(row_word(wide_word(block), column));
  }
  return scaled(found, block);
}

fn word_at(block: u32, word: u32, column: u32) -> word_t {
  return row_word(low_word(block, word), column);
}
