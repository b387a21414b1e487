// out[t] = sum_f frames[f, q - f hop] / sum_f window[q - f hop]^2 with q = t + n_fft / 2: the last step of an inverse STFT.
//
// frames [count, n_fft]: windowed inverse DFTs; out [samples], samples = (count - 1) hop. Frames are added in order. A sequence of a batch
// whose first frame is f begins at sample f hop. One invocation per sample. Reference: test/reference/istft.ts.
override WG: u32;
override SPANS: bool;

struct Params {
  frames_unit: u32,
  frames: u32,
  n_fft: u32,
  hop: u32,
}

@group(0) @binding(0) var<storage, read> frames: array<f32>;
@group(0) @binding(1) var<storage, read> squared_window: array<f32>;
@group(0) @binding(2) var<storage, read> spans: array<vec4<u32>>;
@group(0) @binding(3) var<storage, read_write> out: array<f32>;
@group(0) @binding(4) var<uniform> params: Params;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let t = workgroup_index(group, groups) * WG + lane;
  let span = span_of(group.z);
  let count = span_rows(span, params.frames_unit, params.frames);
  if (t >= (count - 1u) * params.hop) {
    return;
  }
  let base = span.x * params.frames_unit;
  let q = t + params.n_fft / 2u;
  let last = min(q / params.hop, count - 1u);
  let reach = params.n_fft - 1u;
  let first = (max(q, reach) - reach + params.hop - 1u) / params.hop;
  var sum = 0.0;
  var envelope = 0.0;
  for (var f = first; f <= last; f++) {
    let n = q - f * params.hop;
    sum += frames[(base + f) * params.n_fft + n];
    envelope += squared_window[n];
  }
  out[base * params.hop + t] = sum / envelope;
}
