// An invocation's part of the sum of squares of a head of `quads` vec4s, which the kernel's head_quad gives. Of the first `lanes`
// invocations each adds up the quads whose number modulo `lanes` is its own; the others return zero.
fn head_squares(lane: u32, lanes: u32, head: u32, quads: u32) -> f32 {
  var sum = 0.0;
  for (var q = select(quads, lane, lane < lanes); q < quads; q += lanes) {
    let v = head_quad(head, q);
    sum = fma(v.w, v.w, fma(v.z, v.z, fma(v.y, v.y, fma(v.x, v.x, sum))));
  }
  return sum;
}
