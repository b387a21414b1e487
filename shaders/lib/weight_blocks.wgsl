// Weights in blocks of 32 along K: value = scale * code + offset. The layout is that of load/pack_blocks.wgsl: [words of a row][N] u32,
// the codes of all blocks, then words of scales, each for SCALE_BLOCKS blocks, then, with HAS_WIDE, a word for every 8. LOW_BITS and HIGH_BITS are the
// planes of a code, GROUPS the scales of a block. scales_<kind>.wgsl makes scale and offset, codes_<kind>.wgsl the number that a code stands for. Products
// of scale and code have fewer than 24 bits, or no offset, so the values are the file's, widened to f32, bit for bit, fused or not.
alias weight_t = u32;
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

fn row_word(word: u32, column: u32) -> u32 {
  return weight[word * params.n_weight + column];
}

fn load_scales(found: block_t, block: u32, column: u32) -> block_t {
  var loaded = found;
  let start = params.k4 / BLOCK_QUADS * (LOW_BITS + HIGH_BITS);
  loaded.scales = row_word(start + block / SCALE_BLOCKS, column);
  return loaded;
}

fn load_wide(found: block_t, block: u32, column: u32) -> block_t {
  var loaded = found;
  let count = params.k4 / BLOCK_QUADS;
  let start = count * (LOW_BITS + HIGH_BITS) + (count + SCALE_BLOCKS - 1u) / SCALE_BLOCKS;
  loaded.wide = unpack2x16float(row_word(start + block / 8u, column));
  return loaded;
}

fn load_high(found: block_t, block: u32, column: u32) -> block_t {
  var loaded = found;
  let start = block * (LOW_BITS + HIGH_BITS) + LOW_BITS;
  if (HIGH_BITS > 0u) {
    loaded.high.x = row_word(start, column);
  }
  if (HIGH_BITS > 1u) {
    loaded.high.y = row_word(start + 1u, column);
  }
  return loaded;
}

// Any block.
fn block_at(block: u32, column: u32) -> block_t {
  var found = load_scales(block_t(), block, column);
  if (HAS_WIDE == 1u) {
    found = load_wide(found, block, column);
  }
  return block_scales(load_high(found, block, column), block);
}

// The block after `before`, the first being 0: loads what is new.
fn next_block(before: block_t, block: u32, column: u32) -> block_t {
  var found = before;
  if (block % SCALE_BLOCKS == 0u) {
    found = load_scales(found, block, column);
  }
  if (HAS_WIDE == 1u && block % 8u == 0u) {
    found = load_wide(found, block, column);
  }
  return block_scales(load_high(found, block, column), block);
}

// Word 0 to BLOCK_WORDS - 1 of a block: its low bits.
fn word_at(block: u32, word: u32, column: u32) -> word_t {
  return row_word(block * (LOW_BITS + HIGH_BITS) + word, column);
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
