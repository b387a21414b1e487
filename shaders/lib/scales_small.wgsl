// Scales of weight_blocks.wgsl in two levels: an f16 scale per 256 values, times 2^-UNIT_BITS, times a signed byte per group, four groups
// per word; the code ZERO means zero.
const UNIT = 1.0 / f32(1u << UNIT_BITS);

fn block_scales(found: block_t, block: u32) -> block_t {
  var made = found;
  let bytes = bitcast<i32>(found.scales >> (block % SCALE_BLOCKS * GROUPS * 8u));
  let unit = found.wide.x * UNIT;
  made.scale.x = unit * f32((bytes << 24u) >> 24u);
  if (GROUPS == 2u) {
    made.scale.y = unit * f32((bytes << 16u) >> 24u);
  }
  made.offset = -f32(ZERO) * made.scale;
  return made;
}
