// Products with blocks whose codes are masked where they lie, IN_PLACE of weight_blocks.wgsl. The sum over blocks of scale * (sum of x * code) + offset *
// (sum of x), sums in the order of k. Kernels of every number of rows do it like this where one does (ops/linear.ts), so a row has the same bits in each.
const FOLDED = true;

fn factor_quad(block: block_t, packed: word_t, word: u32, quad: u32) -> vec4<f32> {
  return codes_in_place(packed, quad);
}

// x for factor_quad's quad of a word.
fn factor_of(x: vec4<f32>, quad: u32) -> vec4<f32> {
  return x * select(UNITS.xyxy, UNITS.zwzw, quad == 1u);
}

fn quad_total(x: vec4<f32>) -> f32 {
  return x.x + x.y + x.z + x.w;
}

fn folded(acc: f32, sum: f32, block: block_t, total: f32) -> f32 {
  return fma(block.scale.x, sum, fma(block.offset.x, total, acc));
}
