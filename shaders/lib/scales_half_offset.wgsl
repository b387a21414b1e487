// An f16 scale and an f16 offset a block, both in a word, in weight_blocks.wgsl.
fn block_scales(found: block_t, block: u32) -> block_t {
  var made = found;
  let pair = unpack2x16float(found.scales);
  made.scale.x = pair.x;
  made.offset.x = pair.y;
  return made;
}
