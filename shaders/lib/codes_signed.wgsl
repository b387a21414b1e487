// What codes stand for in weight_blocks.wgsl: signed bytes.
fn code_values(codes: u32) -> vec4<f32> {
  return vec4<f32>(unpack4xI8(codes));
}
