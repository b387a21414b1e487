// What products behind a norm read: x / rms(x) * norm with HAS_NORM, x without, as rms_norm.wgsl gives it. Every workgroup makes it anew (norm_rows, then x_quad).
// Needs rms.wgsl, and the kernel's x and norm [K/4] of vec4<f32>, ROWS and NORM_LANES.
const HOLDS = false;

var<private> inverse: array<f32, ROWS>;

fn value_at(at: u32) -> f32 {
  return x[at / 4u][at % 4u];
}

fn norm_rows(first_row: u32, lane: u32) {
  if (HAS_NORM) {
    for (var i = 0u; i < ROWS; i++) {
      inverse[i] = inverse_rms(lane, NORM_LANES, min(first_row + i, params.m - 1u) * params.k4 * 4u, params.k4 * 4u, params.eps);
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
