// Rescaling of the parts of an online softmax in base 2 to a common maximum. LOWEST is the maximum of an empty part, and the score of a
// masked key.
const LOWEST = -1e30;
const LOG2E = 1.4426950408889634;

// 2^(a - b), and exactly 1 for a = b: a part without new keys must not change a bit.
fn rescale(a: f32, b: f32) -> f32 {
  return select(exp2(a - b), 1.0, a == b);
}
