// Products with quantised weights whose scale is applied once per block (IN_PLACE of weight_blocks.wgsl): codes are multiplied where they
// lie in their word, and a column's result is the sum over blocks of scale * (sum of x * code) + offset * (sum of x), each in the order of
// k. Kernels for any number of rows do it where one does (ops/linear.ts), so a row has the same bits in each.
const FOLDED = true;

fn factor_quad(block: block_t, packed: word_t, word: u32, quad: u32) -> vec4<f32> {
  return codes_in_place(packed, quad);
}

// x scaled for the quad of a word that factor_quad gives.
fn factor_of(x: vec4<f32>, quad: u32) -> vec4<f32> {
  return x * select(UNITS.xyxy, UNITS.zwzw, quad == 1u);
}

fn quad_total(x: vec4<f32>) -> f32 {
  return x.x + x.y + x.z + x.w;
}

fn folded(acc: f32, sum: f32, block: block_t, total: f32) -> f32 {
  return fma(block.scale.x, sum, fma(block.offset.x, total, acc));
}
