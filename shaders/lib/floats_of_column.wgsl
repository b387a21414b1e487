// Loads four float weights along K of one column from a buffer [K/4][N] of weight_t (weight_floats.wgsl).
fn word_at(block: u32, word: u32, column: u32) -> word_t {
  return weight[(block * BLOCK_QUADS + word) * params.n_weight + column];
}
