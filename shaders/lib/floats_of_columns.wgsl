// Loads the float weights, four along K, of four neighbouring columns from a buffer [K/4][N] of weight_t (float_columns.wgsl).
fn words_at(block: u32, word: u32, columns: u32) -> words_t {
  var words: words_t;
  for (var c = 0u; c < 4u; c++) {
    words[c] = weight[(block * BLOCK_QUADS + word) * params.n_weight + 4u * columns + c];
  }
  return words;
}

// BLOCK_WORDS. For f32, whose loads are twice the code of f16's, it is computed so that no compiler knows it and unrolls a loop over a
// block's words: on lavapipe that halves the run time and takes a tenth of the time to compile. (K is whole blocks.)
fn block_words() -> u32 {
  if (WEIGHT_WORDS == 4u) {
    return params.k4 / (params.k4 / BLOCK_WORDS);
  }
  return BLOCK_WORDS;
}
