// Quantised weights in blocks of 32 along K: value = scale * code + offset. The layout is that of load/pack_blocks.wgsl: [words of a
// row][N] u32, the codes of all blocks, then words of scales, each for SCALE_BLOCKS blocks, then, with HAS_WIDE, one word per 8 blocks.
// LOW_BITS and HIGH_BITS are the bit planes of a code, GROUPS the number of scales per block. block_column.wgsl or block_columns.wgsl loads
// blocks, scales_<kind>.wgsl computes scale and offset, codes_<kind>.wgsl decodes codes. Products of scale and code have fewer than 24
// bits, or there is no offset, so values are the file's, widened to f32, bit for bit, whether or not the compiler fuses.
alias word_t = u32;

struct block_t {
  // With two GROUPS, y is for the upper 16 values.
  scale: vec2<f32>,
  offset: vec2<f32>,
  // With IN_PLACE: scale times 1, 1/256, 1/16 and 1/4096.
  units: vec4<f32>,
  high: vec2<u32>,
  // Words that it shares with neighbouring blocks.
  scales: u32,
  wide: vec2<f32>,
}

const BLOCK_QUADS = 8u;
// 4-bit codes are not shifted but masked where they lie in a half of a word, which multiplies them by a power of two; the scale is divided
// by it. No bit of a result changes, and a third of the work on one row of weights is unpacking codes.
const IN_PLACE = LOW_BITS == 4u && HIGH_BITS == 0u && GROUPS == 1u && CODES_ARE_NUMBERS;
// Inverse factors of the masked codes: (x, y) for the low nibbles of the two bytes of a half, (z, w) for the high nibbles.
const UNITS = vec4<f32>(1.0, 0.00390625, 0.0625, 0.000244140625);
const BLOCK_WORDS = LOW_BITS;
const WORD_QUADS = 8u / LOW_BITS;

// Index in a row of a block's low-bit word, 0 to BLOCK_WORDS - 1.
fn low_word(block: u32, word: u32) -> u32 {
  return block * (LOW_BITS + HIGH_BITS) + word;
}

// Index in a row of a block's high-bit word, 0 to HIGH_BITS - 1.
fn high_word(block: u32, word: u32) -> u32 {
  return low_word(block, LOW_BITS + word);
}

// Index in a row of the word with the block's scales.
fn scales_word(block: u32) -> u32 {
  return low_word(params.k4 / BLOCK_QUADS, 0u) + block / SCALE_BLOCKS;
}

// Index in a row of the word that 8 blocks share.
fn wide_word(block: u32) -> u32 {
  return scales_word(params.k4 / BLOCK_QUADS + SCALE_BLOCKS - 1u) + block / 8u;
}

// Number of words of a row.
fn row_length() -> u32 {
  let blocks = params.k4 / BLOCK_QUADS;
  return scales_word(blocks + SCALE_BLOCKS - 1u) + HAS_WIDE * ((blocks + 7u) / 8u);
}

// The block with scale, offset and units computed.
fn scaled(found: block_t, block: u32) -> block_t {
  var made = block_scales(found, block);
  if (IN_PLACE) {
    made.units = made.scale.x * UNITS;
  }
  return made;
}

// Codes of four weights along K, masked in place and so multiplied by the inverse of UNITS.
fn codes_in_place(packed: word_t, quad: u32) -> vec4<f32> {
  let mask = (vec4<u32>(15u, 15u << 8u, 15u, 15u << 8u)) << vec4<u32>(quad * 4u);
  return vec4<f32>(vec4<i32>(vec4<u32>(packed, packed, packed >> 16u, packed >> 16u) & mask));
}

// Dequantises four weights along K: quad 0 to WORD_QUADS - 1 of a word.
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
