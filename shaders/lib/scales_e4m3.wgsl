// Scales of weight_blocks.wgsl in two levels: an f32 scale per 256 values, times half an unsigned E4M3 float per group of 16, two blocks per
// word. Codes have a table.
fn half_e4m3(byte: u32) -> f32 {
  let bits = byte & 0x7fu;
  let normal = bitcast<f32>((bits + 952u) << 20u);
  let found = select(normal, f32(i32(bits)) * 0.0009765625, bits < 8u);
  return select(found, 0.0, byte == 0x7fu);
}

fn block_scales(found: block_t, block: u32) -> block_t {
  var made = found;
  let bytes = found.scales >> (block % 2u * 16u);
  made.scale = found.wide.x * vec2<f32>(half_e4m3(bytes & 0xffu), half_e4m3((bytes >> 8u) & 0xffu));
  return made;
}
