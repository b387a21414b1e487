// Scales of weight_blocks.wgsl in f16 with offsets: a scale and an offset per block, both in one word.
fn block_scales(found: block_t, block: u32) -> block_t {
  var made = found;
  let pair = unpack2x16float(found.scales);
  made.scale.x = pair.x;
  made.offset.x = pair.y;
  return made;
}
