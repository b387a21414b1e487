// weight_floats.wgsl by the names of block_columns.wgsl.
alias blocks_t = array<block_t, 4>;
alias words_t = array<word_t, 4>;

const WRITTEN_OUT = false;

fn next_blocks(before: blocks_t, block: u32, columns: u32) -> blocks_t {
  return before;
}

fn words_at(block: u32, word: u32, columns: u32) -> words_t {
  var words: words_t;
  for (var c = 0u; c < 4u; c++) {
    words[c] = word_at(block, word, 4u * columns + c);
  }
  return words;
}
