// Half-precision weights of four columns beside each other in a storage texture, [N / 64][K/4][64 columns], two columns a texel, 512 texels a row of the
// texture (gpu/tensor.ts: TEXEL_ROW; float_columns.wgsl).
fn words_at(block: u32, word: u32, columns: u32) -> words_t {
  let texel = (columns / 16u * params.k4 + block * BLOCK_QUADS + word) * 32u + columns % 16u * 2u;
  let first = textureLoad(weight, vec2<u32>(texel % 512u, texel / 512u));
  let second = textureLoad(weight, vec2<u32>(texel % 512u + 1u, texel / 512u));
  return words_t(first.xy, first.zw, second.xy, second.zw);
}
