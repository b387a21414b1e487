// log[t, m] = log10(max(sum_k filters[m, k] |X[t, k]|^2, 1e-10)) and maxima[t] = max_m log[t, m]. spectrum [T][2 K] holds the real parts of
// the K bins of frame t, then the imaginary parts. A filter is a triangle: spans[m] = (first bin, bins). filters [mels, K], log
// [T][stride]. One workgroup per frame. Reference: test/reference/spectral.ts.
override WG: u32;

const LOG10_2 = 0.30102999566398120;

struct Params {
  frames: u32,
  bins: u32,
  mels: u32,
  stride: u32,
}

@group(0) @binding(0) var<storage, read> spectrum: array<f32>;
@group(0) @binding(1) var<storage, read> filters: array<f32>;
@group(0) @binding(2) var<storage, read> spans: array<vec2<u32>>;
@group(0) @binding(3) var<storage, read_write> log_mel: array<f32>;
@group(0) @binding(4) var<storage, read_write> maxima: array<f32>;
@group(0) @binding(5) var<uniform> params: Params;

var<workgroup> lane_max: array<f32, WG>;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let frame = group.x;
  let real = frame * 2u * params.bins;
  let imaginary = real + params.bins;
  var highest = -10.0;
  for (var m = lane; m < params.mels; m += WG) {
    let span = spans[m];
    var power = 0.0;
    for (var bin = span.x; bin < span.x + span.y; bin++) {
      let re = spectrum[real + bin];
      let im = spectrum[imaginary + bin];
      power = fma(filters[m * params.bins + bin], fma(re, re, im * im), power);
    }
    let value = log2(max(power, 1e-10)) * LOG10_2;
    log_mel[frame * params.stride + m] = value;
    highest = max(highest, value);
  }
  lane_max[lane] = highest;
  workgroupBarrier();
  if (lane == 0u) {
    for (var i = 1u; i < WG; i++) {
      highest = max(highest, lane_max[i]);
    }
    maxima[frame] = highest;
  }
}
