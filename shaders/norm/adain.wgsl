// out[l, c] = f(factor[c] * (x[l, c] - mean[c]) + shift[c]), f being leaky ReLU (slope 0.2) or Snake: y + sin(alpha[c] y)^2 / alpha[c].
//
// x [rows, 4 x_stride4], affine [3][c4] of vec4 (mean, factor, shift: instance_affine.wgsl), alpha [2][c4] of vec4 (alpha, 1 / alpha; unused for leaky
// ReLU), out [rows, C]. One invocation a channel group of a row. Reference: test/reference/adain.ts.
override WG: u32;
override SNAKE: bool;

struct Params {
  rows: u32,
  c4: u32,
  x_stride4: u32,
}

@group(0) @binding(0) var<storage, read> x: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read> affine: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read> alpha: array<vec4<f32>>;
@group(0) @binding(3) var<storage, read_write> out: array<vec4<f32>>;
@group(0) @binding(4) var<uniform> params: Params;

fn squared_sine(x: vec4<f32>) -> vec4<f32> {
  let s = vec4<f32>(reduced_sine(x.x).sine, reduced_sine(x.y).sine, reduced_sine(x.z).sine, reduced_sine(x.w).sine);
  return s * s;
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let i = workgroup_index(group, groups) * WG + lane;
  let row = i / params.c4;
  if (row >= params.rows) {
    return;
  }
  let c = i % params.c4;
  let y = fma(affine[params.c4 + c], x[row * params.x_stride4 + c] - affine[c], affine[2u * params.c4 + c]);
  if (SNAKE) {
    out[i] = fma(alpha[params.c4 + c], squared_sine(alpha[c] * y), y);
  } else {
    out[i] = select(0.2 * y, y, y >= vec4<f32>());
  }
}
