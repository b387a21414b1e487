// Codes of weight_blocks.wgsl that are indices of a table of 16 signed bytes, in the words TABLE_0 to TABLE_3. No array, because software
// adapters keep arrays in memory.
const CODES_ARE_NUMBERS = false;

fn code_value(code: u32) -> i32 {
  let low = select(TABLE_0, TABLE_1, (code & 4u) != 0u);
  let high = select(TABLE_2, TABLE_3, (code & 4u) != 0u);
  let word = select(low, high, (code & 8u) != 0u);
  return bitcast<i32>(word << (24u - (code & 3u) * 8u)) >> 24u;
}

fn code_values(codes: u32) -> vec4<f32> {
  let each = unpack4xU8(codes);
  return vec4<f32>(vec4<i32>(code_value(each.x), code_value(each.y), code_value(each.z), code_value(each.w)));
}
