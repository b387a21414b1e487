// Mean and sum of squared deviations of each channel over chunks of CHUNK rows: the first step of instance norm over time.
//
// x [rows, 4 x_stride4] f32; partial [chunks][c4][2] of vec4: mean, then squared deviations. Neighbouring invocations take neighbouring
// channels. Deviations are taken from the chunk's first row, so that a large offset costs no digits. Reference: test/reference/adain.ts.
override WG: u32;

struct Params {
  rows: u32,
  c4: u32,
  x_stride4: u32,
  chunk: u32,
}

@group(0) @binding(0) var<storage, read> x: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read_write> partial: array<vec4<f32>>;
@group(0) @binding(2) var<uniform> params: Params;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let c = group.y * WG + lane;
  let first = group.x * params.chunk;
  if (c >= params.c4) {
    return;
  }
  let last = min(first + params.chunk, params.rows);
  let pivot = x[first * params.x_stride4 + c];
  var sum = vec4<f32>();
  var squares = vec4<f32>();
  for (var row = first; row < last; row++) {
    let d = x[row * params.x_stride4 + c] - pivot;
    sum += d;
    squares = fma(d, d, squares);
  }
  let count = f32(last - first);
  let at = (group.x * params.c4 + c) * 2u;
  partial[at] = pivot + sum / count;
  partial[at + 1u] = max(squares - sum * sum / count, vec4<f32>());
}
