// Word `word` of four rows of blocks beside each other in a buffer, [words of a row][N] (weight_blocks.wgsl).
alias weight_t = vec4<u32>;

// Whether kernels of one row take a block's words one after the other instead of in a loop (sums_rows.wgsl).
const WRITTEN_OUT = false;

fn row_words(word: u32, columns: u32) -> vec4<u32> {
  return weight[word * (params.n_weight / 4u) + columns];
}

fn block_words() -> u32 {
  return BLOCK_WORDS;
}
