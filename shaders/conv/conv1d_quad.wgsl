// out[l, n] = (act(sum_t sum_c x[l * stride + t * dilation - padding, c] * W[n, t, c] + bias[n]) + residual[l, n]) * scale, with x zero
// outside its rows, on adapters whose subgroup is a SIMD register of 4.
//
// Operands as in conv1d_broadcast.wgsl, with four neighbouring columns per element of the weights (lib/quad_f16.wgsl, lib/quad_f32.wgsl). A
// workgroup computes 16 positions of 32 columns, in tiles that are matrices, as in linear/linear_quad.wgsl. Reference:
// test/reference/conv.ts.
override ACTIVATION: u32;
override HAS_BIAS: bool;
override HAS_RESIDUAL: bool;
override SPANS: bool;

struct Params {
  rows_unit: u32,
  rows: u32,
  rows_in_unit: u32,
  rows_in: u32,
  n: u32,
  n_weight: u32,
  c4: u32,
  x_stride4: u32,
  taps: u32,
  stride: u32,
  padding: u32,
  dilation: u32,
  out_stride: u32,
  out_column: u32,
  out_shift: u32,
  out_size: u32,
  residual_stride: u32,
  residual_repeat: u32,
  scale: f32,
}

@group(0) @binding(0) var<storage, read> x: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read> weight: array<weight_t>;
@group(0) @binding(2) var<storage, read> bias: array<f32>;
@group(0) @binding(3) var<storage, read> residual: array<f32>;
@group(0) @binding(4) var<storage, read> spans: array<vec4<u32>>;
@group(0) @binding(5) var<storage, read_write> out: array<f32>;
@group(0) @binding(6) var<uniform> params: Params;

fn store_tile(span: vec2<u32>, first_row: u32, first_column: u32, sums: mat4x4<f32>) {
  for (var i = 0u; i < 4u; i++) {
    for (var j = 0u; j < 4u; j++) {
      store(span, first_row + i, first_column + j, sums[i][j]);
    }
  }
}

@compute @workgroup_size(4)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(subgroup_invocation_id) lane: u32) {
  let first_row = group.x * 16u;
  let span = span_of(group.z);
  if (first_row >= span_rows(span, params.rows_unit, params.rows)) {
    return;
  }
  let rows_in = span_rows(span, params.rows_in_unit, params.rows_in);
  let base = span.x * params.rows_in_unit;
  let first_column = group.y * 32u + lane * 4u;
  // Copied, because each access to params costs a load (lib/quad_floats.wgsl).
  let n4 = params.n_weight / 4u;
  let c4 = params.c4;
  let columns = min(vec2<u32>(first_column / 4u, first_column / 4u + 4u), vec2<u32>(n4 - 1u));
  let origins = vec4<i32>((vec4<u32>(first_row + lane) + vec4<u32>(0u, 4u, 8u, 12u)) * params.stride) - i32(params.padding);
  var left0 = mat4x4<f32>();
  var left1 = mat4x4<f32>();
  var left2 = mat4x4<f32>();
  var left3 = mat4x4<f32>();
  var right0 = mat4x4<f32>();
  var right1 = mat4x4<f32>();
  var right2 = mat4x4<f32>();
  var right3 = mat4x4<f32>();
  for (var t = 0u; t < params.taps; t++) {
    let positions = origins + i32(t * params.dilation);
    let inside = (positions >= vec4<i32>()) & (positions < vec4<i32>(i32(rows_in)));
    let rows = (vec4<u32>(base) + select(vec4<u32>(), vec4<u32>(positions), inside)) * params.x_stride4;
    let keep = select(vec4<f32>(), vec4<f32>(1.0), inside);
    for (var c = 0u; c < c4; c++) {
      let at = (t * c4 + c) * n4;
      let left = transpose(four_columns(weight[at + columns.x]));
      let right = transpose(four_columns(weight[at + columns.y]));
      let x0 = all_lanes(x[rows.x + c] * keep.x);
      left0 += left * x0;
      right0 += right * x0;
      let x1 = all_lanes(x[rows.y + c] * keep.y);
      left1 += left * x1;
      right1 += right * x1;
      let x2 = all_lanes(x[rows.z + c] * keep.z);
      left2 += left * x2;
      right2 += right * x2;
      let x3 = all_lanes(x[rows.w + c] * keep.w);
      left3 += left * x3;
      right3 += right * x3;
    }
  }
  store_tile(span, first_row, first_column, left0);
  store_tile(span, first_row + 4u, first_column, left1);
  store_tile(span, first_row + 8u, first_column, left2);
  store_tile(span, first_row + 12u, first_column, left3);
  store_tile(span, first_row, first_column + 16u, right0);
  store_tile(span, first_row + 4u, first_column + 16u, right1);
  store_tile(span, first_row + 8u, first_column + 16u, right2);
  store_tile(span, first_row + 12u, first_column + 16u, right3);
}
