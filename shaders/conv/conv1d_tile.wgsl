// out[l, n] = (act(sum_t sum_c x[l * stride + t * dilation - padding, c] * W[n, t, c] + bias[n]) + residual[l, n]) * scale, with x zero
// outside its rows.
//
// Implicit GEMM: x [rows_in, 4 x_stride4] f32, weight [taps * C/4][N] of four values along C (ops/conv.ts), out as lib/conv_store.wgsl
// stores it. Each invocation computes a TILE_M x TILE_N register tile, as in linear/linear_tile.wgsl. Reference: test/reference/conv.ts.
override WG: u32;
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

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let first_row = group.x * TILE_M;
  let span = span_of(group.z);
  if (first_row >= span_rows(span, params.rows_unit, params.rows)) {
    return;
  }
  let rows_in = span_rows(span, params.rows_in_unit, params.rows_in);
  let base = span.x * params.rows_in_unit;
  let first_column = group.y * WG * TILE_N + lane;
  var column: array<u32, TILE_N>;
  for (var j = 0u; j < TILE_N; j++) {
    column[j] = min(first_column + j * WG, params.n_weight - 1u);
  }
  var acc: array<array<f32, TILE_N>, TILE_M>;
  for (var t = 0u; t < params.taps; t++) {
    var row: array<u32, TILE_M>;
    var keep: array<f32, TILE_M>;
    for (var i = 0u; i < TILE_M; i++) {
      let position = i32((first_row + i) * params.stride + t * params.dilation) - i32(params.padding);
      let inside = position >= 0 && position < i32(rows_in);
      row[i] = (base + select(0u, u32(position), inside)) * params.x_stride4;
      keep[i] = select(0.0, 1.0, inside);
    }
    for (var c = 0u; c < params.c4; c++) {
      var w: array<vec4<f32>, TILE_N>;
      for (var j = 0u; j < TILE_N; j++) {
        w[j] = unpack_weight(weight[(t * params.c4 + c) * params.n_weight + column[j]]);
      }
      for (var i = 0u; i < TILE_M; i++) {
        let a = x[row[i] + c] * keep[i];
        for (var j = 0u; j < TILE_N; j++) {
          acc[i][j] = fma(a.w, w[j].w, fma(a.z, w[j].z, fma(a.y, w[j].y, fma(a.x, w[j].x, acc[i][j]))));
        }
      }
    }
  }
  for (var i = 0u; i < TILE_M; i++) {
    for (var j = 0u; j < TILE_N; j++) {
      store(span, first_row + i, first_column + j * WG, acc[i][j]);
    }
  }
}
