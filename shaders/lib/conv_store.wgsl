// The end of the convolutions: bias, activation, residual, scale, bounds. Transposed convolutions write rows of several positions
// that start `out_shift` values before the tensor, so the bounds are those of the flat index. Rows and bounds are a sequence's own.
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
