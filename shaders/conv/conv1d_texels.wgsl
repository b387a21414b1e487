// conv1d_broadcast.wgsl with x and the weights in storage textures, and with the same bits: x has four channels per texel, row by row,
// x_stride4 texels per row (ops/texels.ts); weights lie as lib/conv_columns_f16.wgsl and lib/conv_columns_f32.wgsl say; a row of a texture
// has 512 texels. On lavapipe a texture load is a call that keeps no registers, so all loads of four channels stand before their products.
// The order of sums is the same. Reference: test/reference/conv.ts.
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

@group(0) @binding(0) var x: texture_storage_2d<rgba32uint, read>;
@group(0) @binding(1) var weight: texture_storage_2d<rgba32uint, read>;
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
  let quads = params.taps * params.c4;
  let origin = i32((first_row + lane) * params.stride) - i32(params.padding);
  var acc: array<array<f32, 4>, LANES * ROW_BLOCKS>;
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
      var mine: array<vec4<f32>, ROW_BLOCKS>;
      for (var r = 0u; r < ROW_BLOCKS; r++) {
        let at = row[r] + c;
        mine[r] = bitcast<vec4<f32>>(textureLoad(x, vec2<u32>(at % 512u, at / 512u))) * keep[r];
      }
      let w = weights_of(group.y, lane, t * params.c4 + c, quads);
      for (var r = 0u; r < ROW_BLOCKS; r++) {
        for (var i = 0u; i < LANES; i++) {
          let a = subgroupShuffle(mine[r], i);
          for (var j = 0u; j < 4u; j++) {
            let sum = acc[r * LANES + i][j];
            acc[r * LANES + i][j] = fma(a.w, w[j].w, fma(a.z, w[j].z, fma(a.y, w[j].y, fma(a.x, w[j].x, sum))));
          }
        }
      }
    }
  }
  for (var i = 0u; i < LANES * ROW_BLOCKS; i++) {
    for (var j = 0u; j < 4u; j++) {
      store(span, first_row + i, column_of(group.y, lane, j), acc[i][j]);
    }
  }
}
