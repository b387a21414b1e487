// Loads f16 weights of one column, or of four neighbouring columns, from a storage texture [N / 64][K/4][64 columns], two columns per
// texel, 512 texels per row of the texture (TEXEL_ROW of gpu/tensor.ts; float_columns.wgsl).

// Four weights of column 2 * pair, then four of column 2 * pair + 1.
fn pair_words(quad: u32, pair: u32) -> vec4<u32> {
  let texel = (pair / 32u * params.k4 + quad) * 32u + pair % 32u;
  return textureLoad(weight, vec2<u32>(texel % 512u, texel / 512u));
}

fn word_at(block: u32, word: u32, column: u32) -> word_t {
  let both = pair_words(block * BLOCK_QUADS + word, column / 2u);
  return select(both.xy, both.zw, column % 2u == 1u);
}

fn words_at(block: u32, word: u32, columns: u32) -> words_t {
  let first = pair_words(block * BLOCK_QUADS + word, 2u * columns);
  let second = pair_words(block * BLOCK_QUADS + word, 2u * columns + 1u);
  return words_t(first.xy, first.zw, second.xy, second.zw);
}

fn block_words() -> u32 {
  return BLOCK_WORDS;
}
