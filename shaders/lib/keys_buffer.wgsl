// Four channels of a key in a buffer, [S, C / 4] of vectors.
fn key_quad(at: u32) -> vec4<f32> {
  return k[at];
}
