// Scales of weight_blocks.wgsl in f16: one per block, two per word; the code ZERO means zero.
fn block_scales(found: block_t, block: u32) -> block_t {
  var made = found;
  let pair = unpack2x16float(found.scales);
  made.scale.x = select(pair.x, pair.y, block % 2u == 1u);
  made.offset.x = -f32(ZERO) * made.scale.x;
  return made;
}
