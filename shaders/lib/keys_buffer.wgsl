// Loads four channels of a key from a buffer [S, C / 4] of vec4.
fn key_quad(at: u32) -> vec4<f32> {
  return k[at];
}
