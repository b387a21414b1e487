// Input of products of low rank: x, or x / rms(x) * norm with HAS_NORM, of the row that norm_row was called for, by all of its workgroup.
// For kernels with x and norm [K / 4] of vec4<f32>, WG, HAS_NORM, params.k4 and params.eps; needs reduce*.wgsl.
var<private> inverse: f32;

fn norm_row(row: u32, lane: u32) {
  if (HAS_NORM) {
    var squares = 0.0;
    for (var k = lane; k < params.k4; k += WG) {
      let v = x[row * params.k4 + k];
      squares += dot(v, v);
    }
    inverse = inverseSqrt(reduce_sum(lane, squares) / f32(4u * params.k4) + params.eps);
  }
}

fn x_quad(row: u32, k: u32) -> vec4<f32> {
  let quad = x[row * params.k4 + k];
  if (HAS_NORM) {
    return quad * inverse * norm[k];
  }
  return quad;
}
