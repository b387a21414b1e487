// Sums of linear_quad.wgsl over float weights: an invocation's four columns are one element of the binding (quad_f16.wgsl, quad_f32.wgsl).
// On SwiftShader each buffer access costs an integer division per lane, for the array's length, and each access to params a load per lane,
// so the loops have few of both.

const WIDE = true;

fn row_sums(row: u32, columns: u32) -> vec4<f32> {
  let n4 = params.n_weight / 4u;
  let k4 = params.k4;
  let base = row * k4;
  var sums = vec4<f32>();
  for (var k = 0u; k < k4; k++) {
    sums += transpose(four_columns(weight[k * n4 + columns])) * x[base + k];
  }
  return sums;
}

fn tile_sums(rows: vec4<u32>, columns: vec2<u32>) -> tile_t {
  let n4 = params.n_weight / 4u;
  let k4 = params.k4;
  var left0 = mat4x4<f32>();
  var left1 = mat4x4<f32>();
  var left2 = mat4x4<f32>();
  var left3 = mat4x4<f32>();
  var right0 = mat4x4<f32>();
  var right1 = mat4x4<f32>();
  var right2 = mat4x4<f32>();
  var right3 = mat4x4<f32>();
  for (var k = 0u; k < k4; k++) {
    let left = transpose(four_columns(weight[k * n4 + columns.x]));
    let x0 = all_lanes(x[rows.x + k]);
    left0 += left * x0;
    if (ROWS == 16u) {
      let right = transpose(four_columns(weight[k * n4 + columns.y]));
      right0 += right * x0;
      let x1 = all_lanes(x[rows.y + k]);
      left1 += left * x1;
      right1 += right * x1;
      let x2 = all_lanes(x[rows.z + k]);
      left2 += left * x2;
      right2 += right * x2;
      let x3 = all_lanes(x[rows.w + k]);
      left3 += left * x3;
      right3 += right * x3;
    }
  }
  return tile_t(left0, left1, left2, left3, right0, right1, right2, right3);
}
