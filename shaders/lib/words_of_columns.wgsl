// Loads word `word` of four neighbouring rows of blocks from a buffer [words of a row][N] (weight_blocks.wgsl).
alias weight_t = vec4<u32>;

// Whether sums_rows.wgsl unrolls the loop over a block's words.
const WRITTEN_OUT = false;

fn row_words(word: u32, columns: u32) -> vec4<u32> {
  return weight[word * (params.n_weight / 4u) + columns];
}

fn block_words() -> u32 {
  return BLOCK_WORDS;
}
