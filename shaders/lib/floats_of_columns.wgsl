// The float weights of four columns beside each other in a buffer, [K/4][N] of weight_t (float_columns.wgsl).
fn words_at(block: u32, word: u32, columns: u32) -> words_t {
  var words: words_t;
  for (var c = 0u; c < 4u; c++) {
    words[c] = weight[(block * BLOCK_QUADS + word) * params.n_weight + 4u * columns + c];
  }
  return words;
}

// BLOCK_WORDS; of f32, whose loads are twice the code of f16's, as a number that no compiler knows, so that a loop over a block's words stays a loop: half the time on
// lavapipe, and a tenth to compile. (K is whole blocks.)
fn block_words() -> u32 {
  if (WEIGHT_WORDS == 4u) {
    return params.k4 / (params.k4 / BLOCK_WORDS);
  }
  return BLOCK_WORDS;
}
