// Loads word `word` of a row of blocks from a buffer [words of a row][N] (weight_blocks.wgsl).
alias weight_t = u32;

fn row_word(word: u32, column: u32) -> u32 {
  return weight[word * params.n_weight + column];
}
