// Scales of weight_blocks.wgsl that are powers of two: per block 2^(byte - 128), four bytes per word; the code ZERO means zero. Bytes 0 and
// 1 give denormal numbers.
fn block_scales(found: block_t, block: u32) -> block_t {
  var made = found;
  let byte = (found.scales >> (block % 4u * 8u)) & 0xffu;
  made.scale.x = bitcast<f32>(select((byte - 1u) << 23u, 0x00200000u << byte, byte < 2u));
  made.offset.x = -f32(ZERO) * made.scale.x;
  return made;
}
