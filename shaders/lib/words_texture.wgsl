// Loads word `word` of one or four neighbouring rows of blocks from a storage texture [N / 64][words of a row][64 columns], four columns
// per texel, 512 texels per row of the texture (TEXEL_ROW of gpu/tensor.ts).
const WRITTEN_OUT = true;

fn row_words(word: u32, columns: u32) -> vec4<u32> {
  let texel = (columns / 16u * row_length() + word) * 16u + columns % 16u;
  return textureLoad(weight, vec2<u32>(texel % 512u, texel / 512u));
}

fn row_word(word: u32, column: u32) -> u32 {
  return row_words(word, column / 4u)[column % 4u];
}

fn block_words() -> u32 {
  return BLOCK_WORDS;
}
