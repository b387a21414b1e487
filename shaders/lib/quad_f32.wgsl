// Four weights along K of four neighbouring columns in f32: a matrix with a column for each (quad_f16.wgsl is the f16 version).
alias weight_t = mat4x4<f32>;

fn four_columns(w: weight_t) -> mat4x4<f32> {
  return w;
}
