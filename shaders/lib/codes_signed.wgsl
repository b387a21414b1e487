// Codes of weight_blocks.wgsl that are signed bytes.
const CODES_ARE_NUMBERS = false;

fn code_values(codes: u32) -> vec4<f32> {
  return vec4<f32>(unpack4xI8(codes));
}
