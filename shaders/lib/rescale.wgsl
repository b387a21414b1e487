// How parts of an online softmax, in base 2, are brought to one maximum; LOWEST is that of none, and the score of what a query does not see.
const LOWEST = -1e30;
const LOG2E = 1.4426950408889634;

// 2^(a - b), exactly 1 when they are equal: a part without new keys must not change a bit.
fn rescale(a: f32, b: f32) -> f32 {
  return select(exp2(a - b), 1.0, a == b);
}
