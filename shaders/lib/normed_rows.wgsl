// Input of products behind a norm: x / rms(x) * norm with HAS_NORM, else x, with the bits of rms_norm.wgsl. Every workgroup normalises its
// rows again (norm_rows, then x_quad); the squares of all its rows are summed together, so that their loads overlap and no row waits for
// another's barriers. Needs reduce_rows*.wgsl, the kernel's x and norm [K/4] of vec4<f32>, ROWS and NORM_LANES.
const HOLDS = false;

var<private> inverse: array<f32, ROWS>;

fn norm_rows(first_row: u32, lane: u32) {
  if (HAS_NORM) {
    let columns = params.k4 * 4u;
    var squares = array<f32, ROWS>();
    for (var c = select(columns, lane, lane < NORM_LANES); c < columns; c += NORM_LANES) {
      for (var i = 0u; i < ROWS; i++) {
        let v = x[min(first_row + i, params.m - 1u) * params.k4 + c / 4u][c % 4u];
        squares[i] = fma(v, v, squares[i]);
      }
    }
    squares = reduce_rows(lane, squares);
    for (var i = 0u; i < ROWS; i++) {
      inverse[i] = inverseSqrt(squares[i] / f32(columns) + params.eps);
    }
  }
}

fn x_quad(i: u32, row: u32, k: u32) -> vec4<f32> {
  let quad = x[row * params.k4 + k];
  if (HAS_NORM) {
    return quad * inverse[i] * norm[k];
  }
  return quad;
}
