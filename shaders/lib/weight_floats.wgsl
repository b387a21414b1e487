// Float weights by the names of weight_blocks.wgsl, for kernels that take either: a block is just BLOCK_QUADS quads along K. They are
// weight_t (weight_f16.wgsl, weight_f32.wgsl), loaded by floats_of_column.wgsl, floats_of_columns.wgsl or floats_texture.wgsl.
alias word_t = weight_t;
alias block_t = u32;
alias raw_t = u32;

const BLOCK_WORDS = BLOCK_QUADS;
const WORD_QUADS = 1u;

fn block_at(block: u32, column: u32) -> block_t {
  return 0u;
}

fn raw_block(block: u32, column: u32) -> raw_t {
  return 0u;
}

fn opened(raw: raw_t, block: u32) -> block_t {
  return 0u;
}

fn next_block(before: block_t, block: u32, column: u32) -> block_t {
  return 0u;
}

fn block_quad(block: block_t, packed: word_t, word: u32, quad: u32) -> vec4<f32> {
  return unpack_weight(packed);
}
