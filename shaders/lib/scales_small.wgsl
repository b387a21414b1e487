// Scales of weight_blocks.wgsl in two levels: an f16 scale per 256 values, times a signed byte per group, four groups per word; the code
// ZERO means zero.
fn block_scales(found: block_t, block: u32) -> block_t {
  var made = found;
  let bytes = bitcast<i32>(found.scales >> (block % SCALE_BLOCKS * GROUPS * 8u));
  made.scale.x = found.wide.x * f32((bytes << 24u) >> 24u);
  if (GROUPS == 2u) {
    made.scale.y = found.wide.x * f32((bytes << 16u) >> 24u);
  }
  made.offset = -f32(ZERO) * made.scale;
  return made;
}
