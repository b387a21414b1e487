// Scales of weight_blocks.wgsl in f32, one per row; codes are signed.
fn block_scales(found: block_t, block: u32) -> block_t {
  var made = found;
  made.scale.x = bitcast<f32>(found.scales);
  return made;
}
