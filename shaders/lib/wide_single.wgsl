// The number that 256 values share (weight_blocks.wgsl), from its word: an f32.
fn wide_numbers(word: u32) -> vec2<f32> {
  return vec2<f32>(bitcast<f32>(word), 0.0);
}
