// out[f, n] = signal[mirror(f * hop + n - n_fft / 2)]: overlapping frames of a signal, reflected at both ends.
//
// signal [samples], samples = (frames - 1) hop > n_fft / 2; out [frames, n_fft]: the left operand of a DFT as a matrix product. One
// invocation per four values of a frame; quad and frame are both numbers of the grid, so nothing is divided. A sequence of a batch whose
// first frame is f begins at sample f hop. Reference: test/reference/istft.ts.
override WG: u32;
override SPANS: bool;

struct Params {
  frames_unit: u32,
  frames: u32,
  n_fft: u32,
  hop: u32,
}

@group(0) @binding(0) var<storage, read> signal: array<f32>;
@group(0) @binding(1) var<storage, read> spans: array<vec4<u32>>;
@group(0) @binding(2) var<storage, read_write> out: array<vec4<f32>>;
@group(0) @binding(3) var<uniform> params: Params;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let f = group.y * WG + lane;
  let span = span_of(group.z);
  let frames = span_rows(span, params.frames_unit, params.frames);
  if (f >= frames) {
    return;
  }
  let first = span.x * params.frames_unit;
  let last = i32((frames - 1u) * params.hop) - 1;
  let position = i32(f * params.hop + 4u * group.x) - i32(params.n_fft / 2u);
  var values: vec4<f32>;
  for (var i = 0; i < 4; i++) {
    values[i] = signal[first * params.hop + u32(last - abs(last - abs(position + i)))];
  }
  out[(first + f) * (params.n_fft / 4u) + group.x] = values;
}
