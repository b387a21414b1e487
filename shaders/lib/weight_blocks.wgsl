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
  // IN_PLACE: scale by 1, 1/256, 1/16 and 1/4096.
  units: vec4<f32>,
  high: vec2<u32>,
  // What it shares with the blocks beside it.
  scales: u32,
  wide: vec2<f32>,
}

const BLOCK_QUADS = 8u;
// Codes of four bits are masked where they lie in a half of a word, and their scale is divided by what that makes of them instead of shifting each: no bit
// changes, as these are powers of two, and a third of the work on one row of weights is taking codes out of words.
const IN_PLACE = LOW_BITS == 4u && HIGH_BITS == 0u && GROUPS == 1u && CODES_ARE_NUMBERS;
// What the places of a word's codes divide by, one half after the other: those of the lower bits, then of the upper ones.
const UNITS = vec4<f32>(1.0, 0.00390625, 0.0625, 0.000244140625);
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

// Words of a row.
fn row_length() -> u32 {
  let blocks = params.k4 / BLOCK_QUADS;
  return scales_word(blocks + SCALE_BLOCKS - 1u) + HAS_WIDE * ((blocks + 7u) / 8u);
}

// The block with all that its scale makes.
fn scaled(found: block_t, block: u32) -> block_t {
  var made = block_scales(found, block);
  if (IN_PLACE) {
    made.units = made.scale.x * UNITS;
  }
  return made;
}

// The codes of four weights along K, masked in their word.
fn codes_in_place(packed: word_t, quad: u32) -> vec4<f32> {
  let mask = (vec4<u32>(15u, 15u << 8u, 15u, 15u << 8u)) << vec4<u32>(quad * 4u);
  return vec4<f32>(vec4<i32>(vec4<u32>(packed, packed, packed >> 16u, packed >> 16u) & mask));
}

// Four weights along K: quad 0 to WORD_QUADS - 1 of a word.
fn block_quad(block: block_t, packed: word_t, word: u32, quad: u32) -> vec4<f32> {
  if (IN_PLACE) {
    let units = select(block.units.xyxy, block.units.zwzw, quad == 1u);
    return fma(codes_in_place(packed, quad), units, vec4<f32>(block.offset.x));
  }
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
