// out[t, m] = (max(log[t, m], max(maxima) - 8) + 4) / 4: Whisper's features, cut eight decades below the loudest value of the window. log
// and out [T][stride]; columns from mels on (padding for the convolution) become 0. Each workgroup finds the maximum and scales FRAMES
// frames. Reference: test/reference/spectral.ts.
override WG: u32;
override FRAMES: u32;

struct Params {
  frames: u32,
  mels: u32,
  stride: u32,
}

@group(0) @binding(0) var<storage, read> log_mel: array<f32>;
@group(0) @binding(1) var<storage, read> maxima: array<f32>;
@group(0) @binding(2) var<storage, read_write> out: array<f32>;
@group(0) @binding(3) var<uniform> params: Params;

var<workgroup> lane_max: array<f32, WG>;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  var highest = maxima[0];
  for (var t = lane; t < params.frames; t += WG) {
    highest = max(highest, maxima[t]);
  }
  lane_max[lane] = highest;
  workgroupBarrier();
  for (var i = 0u; i < WG; i++) {
    highest = max(highest, lane_max[i]);
  }
  let first = group.x * FRAMES * params.stride;
  let end = min(first + FRAMES * params.stride, params.frames * params.stride);
  for (var i = first + lane; i < end; i += WG) {
    out[i] = select(0.0, (max(log_mel[i], highest - 8.0) + 4.0) / 4.0, i % params.stride < params.mels);
  }
}
