// phase[i, h] = fract(sum_{j <= i} samples_per_frame * fract(f0[j] (h + 1) / sample_rate)): the phase in cycles, modulo 1, of each harmonic
// at the centre of each F0 frame.
//
// f0 [frames, f0_stride] (column 0), phase [frames, HARMONICS]. One invocation per harmonic runs through time. The sum is kept below one
// cycle, so f32 keeps its precision however long the sentence is. Reference: test/reference/source.ts.
override SPANS: bool;

struct Params {
  frames_unit: u32,
  frames: u32,
  f0_stride: u32,
  samples_per_frame: f32,
  sample_rate: f32,
}

@group(0) @binding(0) var<storage, read> f0: array<f32>;
@group(0) @binding(1) var<storage, read> spans: array<vec4<u32>>;
@group(0) @binding(2) var<storage, read_write> phase: array<f32>;
@group(0) @binding(3) var<uniform> params: Params;

@compute @workgroup_size(HARMONICS)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) harmonic: u32) {
  let span = span_of(group.z);
  let first = span.x * params.frames_unit;
  let frames = span_rows(span, params.frames_unit, params.frames);
  var sum = 0.0;
  for (var i = 0u; i < frames; i++) {
    let cycles = fract(f0[(first + i) * params.f0_stride] * f32(harmonic + 1u) / params.sample_rate);
    sum = fract(sum + fract(cycles * params.samples_per_frame));
    phase[(first + i) * HARMONICS + harmonic] = sum;
  }
}
