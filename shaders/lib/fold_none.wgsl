// fold.wgsl for weights that are dequantised one by one: the factors are the weights, and a block needs no further scale.
const FOLDED = false;

fn factor_quad(block: block_t, packed: word_t, word: u32, quad: u32) -> vec4<f32> {
  return block_quad(block, packed, word, quad);
}

fn factor_of(x: vec4<f32>, quad: u32) -> vec4<f32> {
  return x;
}

fn quad_total(x: vec4<f32>) -> f32 {
  return 0.0;
}

fn folded(acc: f32, sum: f32, block: block_t, total: f32) -> f32 {
  return sum;
}
