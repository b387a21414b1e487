// out[l, n] = (act(sum_t sum_c x[l * stride + t * dilation - padding, c] * W[n, t, c] + bias[n]) + residual[l, n]) * scale, with x zero
// outside its rows, on adapters whose subgroup is a SIMD register of LANES.
//
// Implicit GEMM: x [rows_in, 4 x_stride4] f32, weight [taps * C/4][N] of four values along C (ops/conv.ts), out as lib/conv_store.wgsl
// stores it. As in linear/linear_broadcast.wgsl, LANES invocations load LANES positions at once and exchange them by shuffles, so that
// TILE_N + ROW_BLOCKS loads make ROW_BLOCKS x LANES x TILE_N products. A row's sum runs over taps, then channels. Reference:
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

@compute @workgroup_size(LANES)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(subgroup_invocation_id) lane: u32) {
  let first_row = group.x * LANES * ROW_BLOCKS;
  let span = span_of(group.z);
  if (first_row >= span_rows(span, params.rows_unit, params.rows)) {
    return;
  }
  let rows_in = span_rows(span, params.rows_in_unit, params.rows_in);
  let base = span.x * params.rows_in_unit;
  let first_column = group.y * LANES * TILE_N + lane;
  var column: array<u32, TILE_N>;
  for (var j = 0u; j < TILE_N; j++) {
    column[j] = min(first_column + j * LANES, params.n_weight - 1u);
  }
  let origin = i32((first_row + lane) * params.stride) - i32(params.padding);
  var acc: array<array<f32, TILE_N>, LANES * ROW_BLOCKS>;
  for (var t = 0u; t < params.taps; t++) {
    var row: array<u32, ROW_BLOCKS>;
    var keep: array<f32, ROW_BLOCKS>;
    for (var r = 0u; r < ROW_BLOCKS; r++) {
      let position = origin + i32(t * params.dilation + r * LANES * params.stride);
      let inside = position >= 0 && position < i32(rows_in);
      row[r] = (base + select(0u, u32(position), inside)) * params.x_stride4;
      keep[r] = select(0.0, 1.0, inside);
    }
    for (var c = 0u; c < params.c4; c++) {
      var w: array<vec4<f32>, TILE_N>;
      for (var j = 0u; j < TILE_N; j++) {
        w[j] = unpack_weight(weight[(t * params.c4 + c) * params.n_weight + column[j]]);
      }
      for (var r = 0u; r < ROW_BLOCKS; r++) {
        let mine = x[row[r] + c] * keep[r];
        for (var i = 0u; i < LANES; i++) {
          let a = subgroupShuffle(mine, i);
          for (var j = 0u; j < TILE_N; j++) {
            let sum = acc[r * LANES + i][j];
            acc[r * LANES + i][j] = fma(a.w, w[j].w, fma(a.z, w[j].z, fma(a.y, w[j].y, fma(a.x, w[j].x, sum))));
          }
        }
      }
    }
  }
  for (var i = 0u; i < LANES * ROW_BLOCKS; i++) {
    for (var j = 0u; j < TILE_N; j++) {
      store(span, first_row + i, first_column + j * LANES, acc[i][j]);
    }
  }
}
