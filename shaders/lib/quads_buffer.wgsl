// Stores four neighbouring values in `out`, an array of vec4.
fn put_quad(at: u32, value: vec4<f32>) {
  out[at] = value;
}
