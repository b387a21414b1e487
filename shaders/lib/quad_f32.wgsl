// Four weights along K of four columns beside each other: a column of the matrix for each. See quad_f16.wgsl for the other storage.
alias weight_t = mat4x4<f32>;

fn four_columns(w: weight_t) -> mat4x4<f32> {
  return w;
}
