// Phase in cycles, modulo 1, of each harmonic at the centre of each F0 frame:
// phase[i, h] = fract(sum_{j <= i} samples_per_frame * fract(f0[j] (h + 1) / sample_rate)).
//
// f0 [frames, f0_stride] (column 0), phase [frames, HARMONICS]. One invocation a harmonic walks through time. The sum is kept below one
// cycle, so f32 never runs out of digits however long the sentence is. Reference: test/reference/source.ts.
struct Params {
  frames: u32,
  f0_stride: u32,
  samples_per_frame: f32,
  sample_rate: f32,
}

@group(0) @binding(0) var<storage, read> f0: array<f32>;
@group(0) @binding(1) var<storage, read_write> phase: array<f32>;
@group(0) @binding(2) var<uniform> params: Params;

@compute @workgroup_size(HARMONICS)
fn main(@builtin(local_invocation_index) harmonic: u32) {
  var sum = 0.0;
  for (var i = 0u; i < params.frames; i++) {
    let cycles = fract(f0[i * params.f0_stride] * f32(harmonic + 1u) / params.sample_rate);
    sum = fract(sum + fract(cycles * params.samples_per_frame));
    phase[i * HARMONICS + harmonic] = sum;
  }
}
