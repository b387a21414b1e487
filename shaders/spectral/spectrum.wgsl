// out[f, k] = m cos p and out[f, bins + k] = m sin p with m = exp(x[f, k]), p = sin(x[f, bins + k]): a spectrum from the last convolution
// of iSTFTNet.
//
// x and out [frames, stride]; columns from 2 bins on are left alone. One invocation per bin. Reference: test/reference/istft.ts.
override WG_ROWS: u32;

struct Params {
  frames: u32,
  bins: u32,
  stride: u32,
}

@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> out: array<f32>;
@group(0) @binding(2) var<uniform> params: Params;

@compute @workgroup_size(8, WG_ROWS)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
  if (id.x >= params.bins || id.y >= params.frames) {
    return;
  }
  let at = id.y * params.stride + id.x;
  let magnitude = exp(x[at]);
  let phase = precise_sin(x[at + params.bins]);
  out[at] = magnitude * precise_cos(phase);
  out[at + params.bins] = magnitude * precise_sin(phase);
}
