// The end of an inverse STFT: out[t] = sum_f frames[f, q - f hop] / sum_f window[q - f hop]^2 with q = t + n_fft / 2.
//
// frames [count, n_fft]: windowed inverse DFTs; out [samples], samples = (count - 1) hop. Frames are added in order. One invocation
// a sample. Reference: test/reference/istft.ts.
override WG: u32;

struct Params {
  samples: u32,
  count: u32,
  n_fft: u32,
  hop: u32,
}

@group(0) @binding(0) var<storage, read> frames: array<f32>;
@group(0) @binding(1) var<storage, read> squared_window: array<f32>;
@group(0) @binding(2) var<storage, read_write> out: array<f32>;
@group(0) @binding(3) var<uniform> params: Params;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let t = workgroup_index(group, groups) * WG + lane;
  if (t >= params.samples) {
    return;
  }
  let q = t + params.n_fft / 2u;
  let last = min(q / params.hop, params.count - 1u);
  let reach = params.n_fft - 1u;
  let first = (max(q, reach) - reach + params.hop - 1u) / params.hop;
  var sum = 0.0;
  var envelope = 0.0;
  for (var f = first; f <= last; f++) {
    let n = q - f * params.hop;
    sum += frames[f * params.n_fft + n];
    envelope += squared_window[n];
  }
  out[t] = sum / envelope;
}
