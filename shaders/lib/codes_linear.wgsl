// What codes stand for in weight_blocks.wgsl: whole numbers from 0 up; the offset says which of them is zero.
const CODES_ARE_NUMBERS = true;

fn code_values(codes: u32) -> vec4<f32> {
  return vec4<f32>(vec4<i32>(unpack4xU8(codes)));
}
