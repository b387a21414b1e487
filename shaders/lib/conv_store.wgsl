// Epilogue of the convolutions: bias, activation, residual, scale, bounds. A row of a transposed convolution has several output positions
// and starts `out_shift` values before the tensor, so bounds are checked on the flat index. Rows and bounds are those of one sequence.
fn store(span: vec2<u32>, row: u32, n: u32, sum: f32) {
  let at = row * params.out_stride + params.out_column + n;
  let out_size = span.y * params.rows_unit * params.out_stride + params.out_size;
  if (row >= span_rows(span, params.rows_unit, params.rows) || n >= params.n || at < params.out_shift || at - params.out_shift >= out_size) {
    return;
  }
  var y = sum;
  if (HAS_BIAS) {
    y += bias[n];
  }
  y = activate(ACTIVATION, y);
  let first = span.x * params.rows_unit;
  if (HAS_RESIDUAL) {
    y += residual[(first + row) / params.residual_repeat * params.residual_stride + n];
  }
  out[first * params.out_stride + at - params.out_shift] = y * params.scale;
}
