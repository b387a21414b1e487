// f16 scales of scales and of offsets for 256 values, times whole numbers of a group, in weight_blocks.wgsl: groups of 32 have two bytes (scale, offset),
// groups of 16 one with 4 bits each; a word has two blocks. The offset is subtracted.
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
