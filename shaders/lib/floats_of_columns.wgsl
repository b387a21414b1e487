// The float weights of four columns beside each other in a buffer, [K/4][N] of weight_t (float_columns.wgsl).
fn words_at(block: u32, word: u32, columns: u32) -> words_t {
  var words: words_t;
  for (var c = 0u; c < 4u; c++) {
    words[c] = weight[(block * BLOCK_QUADS + word) * params.n_weight + 4u * columns + c];
  }
  return words;
}

// BLOCK_WORDS, which no compiler knows, so that a loop over a block's words stays a loop: f32 weights take 0.75 of the time so on lavapipe.
fn block_words() -> u32 {
  return min(BLOCK_WORDS, params.k4);
}
