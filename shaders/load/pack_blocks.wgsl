// packed [groups][word of a row][beside] = rows of a quantised matrix, as a file stores them (lib/stored_<layout>.wgsl), in the layout of
// lib/weight_blocks.wgsl, from column out_column on. Rows of the matrix are columns of the product, and `beside` of them lie next to each
// other (lib/packed_words.wgsl).
//
// A row holds the codes of all blocks of 32, then words of scales, each for SCALE_BLOCKS blocks, then, with HAS_WIDE, one word per 8
// blocks. The low bits of a block's codes share words: word w of 4-bit codes has code 8 w + i in nibble 2 i and code 8 w + 4 + i in nibble
// 2 i + 1, i from 0 to 3, so that a shift and a mask leave four codes in the four bytes; 2-bit codes likewise, 16 per word. The high bits
// of quad i are, with HIGH_BITS 1, bit i of the four bytes of a word; with HIGH_BITS 2, bits 2 i and 2 i + 1, four quads per word.
// flags[tensor] becomes 1 when a scale is such that a value may not be finite. raw: rows of row_bytes, read from first_byte on. grid: of
// types whose codes are found in one (lib/stored_grid.wgsl). One invocation per row and block of 32.
override WG: u32;

struct Params {
  rows: u32,
  first_row: u32,
  row_bytes: u32,
  first_byte: u32,
  blocks: u32,
  out_column: u32,
  beside: u32,
  row_words: u32,
  tensor: u32,
}

@group(0) @binding(0) var<storage, read> raw: array<u32>;
@group(0) @binding(1) var<storage, read> grid: array<u32>;
@group(0) @binding(2) var<storage, read_write> packed: array<u32>;
@group(0) @binding(3) var<storage, read_write> flags: array<u32>;
@group(0) @binding(4) var<uniform> params: Params;

// Kinds of scales (SCALES), numbered as in ops/pack-blocks.ts.
const HALF = 0u;
const HALF_OFFSET = 1u;
const EXPONENT = 2u;
const ROW = 3u;
const SMALL = 4u;
const SMALL_OFFSET = 5u;
const E4M3 = 6u;

// Blocks of 32 per block of the file, and bits of a group's scale and offset.
const IN_ONE = STORED_VALUES / 32u;
const GROUP_BITS = select(8u, 16u, SCALES == SMALL_OFFSET && GROUPS == 1u);
const LOW_MASK = 0x01010101u * ((1u << LOW_BITS) - 1u);
const HIGH_MASK = 0x01010101u * ((1u << HIGH_BITS) - 1u);

// The largest stored exponent whose power of two times any code is finite in f32, and the largest exponent field of an f32 scale for which
// that holds: of a row, and of one that is multiplied by E4M3 floats too.
const LARGEST_EXPONENT = 252u;
const LARGEST_FIELD = select(246u, 241u, SCALES == E4M3);

// Bits of a block's f16 scale; with IS_SPREAD they are the upper nibbles of four 16-bit numbers.
fn half_scale(stored: u32) -> u32 {
  let at = stored + SCALE_AT;
  if (IS_SPREAD == 0u) {
    return half_at(at);
  }
  var bits = 0u;
  for (var i = 0u; i < 4u; i++) {
    bits |= (half_at(at + i * 2u) >> 12u) << (i * 4u);
  }
  return bits;
}

fn is_bad(stored: u32) -> bool {
  if (SCALES == EXPONENT) {
    return byte_at(stored + SCALE_AT) > LARGEST_EXPONENT;
  }
  if (SCALES == ROW || SCALES == E4M3) {
    return ((word_from(stored + SCALE_AT) >> 23u) & 0xffu) > LARGEST_FIELD;
  }
  let scale = half_scale(stored);
  let offset = select(0u, half_at(stored + OFFSET_AT), HAS_OFFSET == 1u);
  return (scale & 0x7c00u) == 0x7c00u || (offset & 0x7c00u) == 0x7c00u;
}

// The word of scales whose first one is the block's.
fn scale_word(row: u32, block: u32) -> u32 {
  let stored = row + block / IN_ONE * STORED_BYTES;
  if (SCALES == ROW) {
    return word_from(stored + SCALE_AT);
  }
  if (SCALES == E4M3) {
    return word_from(stored + SCALES_AT);
  }
  if (SCALES == HALF_OFFSET) {
    return half_at(stored + SCALE_AT) | (half_at(stored + OFFSET_AT) << 16u);
  }
  var word = 0u;
  if (SCALES == SMALL || SCALES == SMALL_OFFSET) {
    let first = block % 8u * GROUPS;
    for (var i = 0u; i < 32u / GROUP_BITS; i++) {
      word |= select(1u, group_scales(stored, first + i), HAS_SCALES == 1u) << (i * GROUP_BITS);
    }
    return word;
  }
  for (var i = 0u; i < SCALE_BLOCKS && block + i < params.blocks; i++) {
    let at = stored + i * STORED_BYTES + SCALE_AT;
    if (SCALES == HALF) {
      word |= half_at(at) << (i * 16u);
    } else {
      word |= byte_at(at) << (i * 8u);
    }
  }
  return word;
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let index = group.x * WG + lane;
  if (index >= params.rows) {
    return;
  }
  let row = (params.first_row + index) * params.row_bytes + params.first_byte;
  let column = params.out_column + index;
  let block = group.y;
  let stored = row + block / IN_ONE * STORED_BYTES;
  let first = block % IN_ONE * 8u;
  let start = block * (LOW_BITS + HIGH_BITS);
  for (var word = 0u; word < LOW_BITS; word++) {
    var codes = 0u;
    for (var quad = 0u; quad < 8u / LOW_BITS; quad++) {
      codes |= (codes_at(stored, first + word * (8u / LOW_BITS) + quad) & LOW_MASK) << (quad * LOW_BITS);
    }
    packed[word_place(start + word, column)] = codes;
  }
  for (var word = 0u; word < HIGH_BITS; word++) {
    var codes = 0u;
    for (var quad = 0u; quad < 8u / max(HIGH_BITS, 1u); quad++) {
      codes |= ((codes_at(stored, first + word * (8u / max(HIGH_BITS, 1u)) + quad) >> LOW_BITS) & HIGH_MASK) << (quad * HIGH_BITS);
    }
    packed[word_place(start + LOW_BITS + word, column)] = codes;
  }
  let scales = params.blocks * (LOW_BITS + HIGH_BITS);
  if (block % SCALE_BLOCKS == 0u) {
    packed[word_place(scales + block / SCALE_BLOCKS, column)] = scale_word(row, block);
  }
  if (HAS_WIDE == 1u && block % 8u == 0u) {
    let wide = scales + (params.blocks + SCALE_BLOCKS - 1u) / SCALE_BLOCKS + block / 8u;
    let halves = half_scale(stored) | (select(0u, half_at(stored + OFFSET_AT), HAS_OFFSET == 1u) << 16u);
    packed[word_place(wide, column)] = select(halves, word_from(stored + SCALE_AT), SCALES == E4M3);
  }
  if (block % IN_ONE == 0u && is_bad(stored)) {
    flags[params.tensor] = 1u;
  }
}
