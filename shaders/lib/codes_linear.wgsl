// Codes of weight_blocks.wgsl that are unsigned integers; the block's offset decides which of them means zero.
const CODES_ARE_NUMBERS = true;

fn code_values(codes: u32) -> vec4<f32> {
  return vec4<f32>(vec4<i32>(unpack4xU8(codes)));
}
