// Overlapping frames of a signal, mirrored at both ends: out[f, n] = signal[mirror(f * hop + n - n_fft / 2)].
//
// signal [samples], samples > n_fft / 2; out [frames, n_fft]: the left operand of a DFT as a matrix product. One invocation a value.
// Reference: test/reference/istft.ts.
override WG: u32;

struct Params {
  samples: u32,
  frames: u32,
  n_fft: u32,
  hop: u32,
}

@group(0) @binding(0) var<storage, read> signal: array<f32>;
@group(0) @binding(1) var<storage, read_write> out: array<f32>;
@group(0) @binding(2) var<uniform> params: Params;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let i = workgroup_index(group, groups) * WG + lane;
  let f = i / params.n_fft;
  if (f >= params.frames) {
    return;
  }
  let last = i32(params.samples) - 1;
  let position = abs(i32(f * params.hop + i % params.n_fft) - i32(params.n_fft / 2u));
  out[i] = signal[last - abs(last - position)];
}
