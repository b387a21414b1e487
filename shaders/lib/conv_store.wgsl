// The end of the convolutions: bias, activation, residual, scale, bounds. Transposed convolutions write rows of several positions
// that start `out_shift` values before the tensor, so the bounds are those of the flat index.
fn store(row: u32, n: u32, sum: f32) {
  let at = row * params.out_stride + params.out_column + n;
  if (row >= params.rows || n >= params.n || at < params.out_shift || at - params.out_shift >= params.out_size) {
    return;
  }
  var y = sum;
  if (HAS_BIAS) {
    y += bias[n];
  }
  y = activate(ACTIVATION, y);
  if (HAS_RESIDUAL) {
    y += residual[row / params.residual_repeat * params.residual_stride + n];
  }
  out[at - params.out_shift] = y * params.scale;
}
