// The numbers that 256 values share (weight_blocks.wgsl), from their word: two f16.
fn wide_numbers(word: u32) -> vec2<f32> {
  return unpack2x16float(word);
}
