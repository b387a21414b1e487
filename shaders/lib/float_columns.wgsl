// Float weights (weight_floats.wgsl) by the names of block_columns.wgsl; words_at is in floats_of_columns.wgsl or floats_texture.wgsl.
alias blocks_t = array<block_t, 4>;
alias words_t = array<word_t, 4>;

const WRITTEN_OUT = false;

fn next_blocks(before: blocks_t, block: u32, columns: u32) -> blocks_t {
  return before;
}
