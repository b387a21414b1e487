// Scales and offsets of weight_blocks.wgsl in two levels: an f16 scale of scales and an f16 scale of offsets per 256 values, times unsigned
// integers per group. A group of 32 has two bytes (scale, offset), a group of 16 one byte with 4 bits each; a word has two blocks. The
// offset is subtracted.
fn block_scales(found: block_t, block: u32) -> block_t {
  var made = found;
  let bits = found.scales >> (block % 2u * 16u);
  if (GROUPS == 1u) {
    made.scale.x = found.wide.x * f32(i32(bits & 0xffu));
    made.offset.x = -(found.wide.y * f32(i32((bits >> 8u) & 0xffu)));
  } else {
    made.scale = found.wide.x * vec2<f32>(vec2<i32>(vec2<u32>(bits, bits >> 8u) & vec2<u32>(15u)));
    made.offset = -(found.wide.y * vec2<f32>(vec2<i32>(vec2<u32>(bits >> 4u, bits >> 12u) & vec2<u32>(15u))));
  }
  return made;
}
