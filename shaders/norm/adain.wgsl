// out[l, c] = f(factor[c] * (x[l, c] - mean[c]) + shift[c]), where f is leaky ReLU (slope 0.2) or, with SNAKE, Snake: y + sin(alpha[c] y)^2
// / alpha[c].
//
// x [rows, 4 x_stride4], affine [sequences][3][c4] of vec4 (mean, factor, shift: instance_affine.wgsl), alpha [2][c4] of vec4 (alpha, 1 /
// alpha; unused without SNAKE), out [rows, C], stored by lib/quads_buffer.wgsl or lib/quads_texture.wgsl. A workgroup is WG quads of
// channels x WG_ROWS rows; each invocation keeps its channels for ROWS rows, so that per-channel numbers are loaded once and nothing is
// divided. Reference: test/reference/adain.ts.
override WG: u32;
override WG_ROWS: u32;
override ROWS: u32;
override SNAKE: bool;
override SPANS: bool;

struct Params {
  rows_unit: u32,
  rows: u32,
  c4: u32,
  x_stride4: u32,
}

@group(0) @binding(0) var<storage, read> x: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read> affine: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read> alpha: array<vec4<f32>>;
@group(0) @binding(3) var<storage, read> spans: array<vec4<u32>>;
@group(0) @binding(4) var<storage, read_write> out: array<vec4<f32>>;
@group(0) @binding(5) var<uniform> params: Params;

fn squared_sine(x: vec4<f32>) -> vec4<f32> {
  let s = vec4<f32>(reduced_sine(x.x).sine, reduced_sine(x.y).sine, reduced_sine(x.z).sine, reduced_sine(x.w).sine);
  return s * s;
}

@compute @workgroup_size(WG, WG_ROWS)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_id) lane: vec3<u32>) {
  let c = group.y * WG + lane.x;
  let span = span_of(group.z);
  let rows = span_rows(span, params.rows_unit, params.rows);
  if (c >= params.c4 || group.x * WG_ROWS * ROWS >= rows) {
    return;
  }
  let base = span.x * params.rows_unit;
  let at = group.z * 3u * params.c4 + c;
  let mean = affine[at];
  let factor = affine[at + params.c4];
  let shift = affine[at + 2u * params.c4];
  var frequency = vec4<f32>();
  var inverse = vec4<f32>();
  if (SNAKE) {
    frequency = alpha[c];
    inverse = alpha[params.c4 + c];
  }
  let first = group.x * WG_ROWS * ROWS + lane.y;
  let last = min((group.x + 1u) * WG_ROWS * ROWS, rows);
  for (var row = first; row < last; row += WG_ROWS) {
    let y = fma(factor, x[(base + row) * params.x_stride4 + c] - mean, shift);
    if (SNAKE) {
      put_quad((base + row) * params.c4 + c, fma(inverse, squared_sine(frequency * y), y));
    } else {
      put_quad((base + row) * params.c4 + c, select(0.2 * y, y, y >= vec4<f32>()));
    }
  }
}
