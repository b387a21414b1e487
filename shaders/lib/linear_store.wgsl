// Epilogue of the linear kernels: bias, activation, residual, bounds. Needs the kernel's bindings bias, residual, out and params.
fn store(row: u32, n: u32, sum: f32) {
  if (row >= params.m || n >= params.n) {
    return;
  }
  let at = row * params.out_stride + params.out_column + n;
  var y = sum;
  if (HAS_BIAS) {
    y += bias[params.bias_column + n];
  }
  y = activate(ACTIVATION, y);
  if (HAS_RESIDUAL) {
    y += residual[at];
  }
  out[at] = y;
}
