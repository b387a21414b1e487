// Weights in blocks of 32 along K: value = scale * code + offset. The layout is that of load/pack_blocks.wgsl: [words of a row][N] u32,
// the codes of all blocks, then words of scales, each for SCALE_BLOCKS blocks, then, with HAS_WIDE, a word for every 8. LOW_BITS and HIGH_BITS are the
// planes of a code, GROUPS the scales of a block. block_column.wgsl or block_columns.wgsl loads them, scales_<kind>.wgsl makes scale and offset,
// codes_<kind>.wgsl the number that a code stands for. Products of scale and code have fewer than 24 bits, or no offset, so the values are the file's,
// widened to f32, bit for bit, fused or not.
alias word_t = u32;

struct block_t {
  // Of vectors with two, the second is of the upper 16 values.
  scale: vec2<f32>,
  offset: vec2<f32>,
  high: vec2<u32>,
  // What it shares with the blocks beside it.
  scales: u32,
  wide: vec2<f32>,
}

const BLOCK_QUADS = 8u;
const BLOCK_WORDS = LOW_BITS;
const WORD_QUADS = 8u / LOW_BITS;

// Word 0 to BLOCK_WORDS - 1 of a block in a row: its low bits.
fn low_word(block: u32, word: u32) -> u32 {
  return block * (LOW_BITS + HIGH_BITS) + word;
}

// Word 0 to HIGH_BITS - 1 of a block in a row: its high bits.
fn high_word(block: u32, word: u32) -> u32 {
  return low_word(block, LOW_BITS + word);
}

// The word of a row that has the block's scales.
fn scales_word(block: u32) -> u32 {
  return low_word(params.k4 / BLOCK_QUADS, 0u) + block / SCALE_BLOCKS;
}

// The word of a row that has what 8 blocks share.
fn wide_word(block: u32) -> u32 {
  return scales_word(params.k4 / BLOCK_QUADS + SCALE_BLOCKS - 1u) + block / 8u;
}

// Four weights along K: quad 0 to WORD_QUADS - 1 of a word.
fn block_quad(block: block_t, packed: word_t, word: u32, quad: u32) -> vec4<f32> {
  let i = word * WORD_QUADS + quad;
  var codes = packed;
  if (LOW_BITS == 4u) {
    codes = (packed >> (quad * 4u)) & 0x0f0f0f0fu;
  }
  if (LOW_BITS == 2u) {
    codes = (packed >> (quad * 2u)) & 0x03030303u;
  }
  if (HIGH_BITS == 1u) {
    codes |= ((block.high.x >> i) & 0x01010101u) << LOW_BITS;
  }
  if (HIGH_BITS == 2u) {
    codes |= ((select(block.high.x, block.high.y, i >= 4u) >> ((i & 3u) * 2u)) & 0x03030303u) << LOW_BITS;
  }
  let second = GROUPS == 2u && i >= 4u;
  let scale = select(block.scale.x, block.scale.y, second);
  return fma(code_values(codes), vec4<f32>(scale), vec4<f32>(select(block.offset.x, block.offset.y, second)));
}
