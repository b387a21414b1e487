// out[t] = tanh(bias + sum_h weight[h] (0.1 sin(2 pi phase_h(t)) voiced + noise(t, h))): harmonic-plus-noise excitation (Wang et al. 2019).
//
// phase [frames, HARMONICS] of source_phase.wgsl, interpolated linearly between frame centres; f0 [frames, f0_stride] in Hz; merge
// [HARMONICS + 1]: weights, then bias. Noise has amplitude 0.003 where F0 > 10 Hz, else 0.1 / 3, times noise_scale; it depends only on
// (seed, first_sample + t, h), of which a sequence of a batch has its own two numbers in `spans`. One invocation per sample. Reference:
// test/reference/source.ts.
override WG: u32;
override SPANS: bool;

const SINE_AMPLITUDE = 0.1;
const NOISE_AMPLITUDE = 0.003;
const VOICED_HZ = 10.0;

struct Params {
  frames_unit: u32,
  frames: u32,
  f0_stride: u32,
  samples_per_frame: u32,
  sample_rate: f32,
  seed: u32,
  first_sample: u32,
  noise_scale: f32,
}

@group(0) @binding(0) var<storage, read> f0: array<f32>;
@group(0) @binding(1) var<storage, read> phase: array<f32>;
@group(0) @binding(2) var<storage, read> merge: array<f32>;
@group(0) @binding(3) var<storage, read> spans: array<vec4<u32>>;
@group(0) @binding(4) var<storage, read_write> out: array<f32>;
@group(0) @binding(5) var<uniform> params: Params;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let t = workgroup_index(group, groups) * WG + lane;
  let span = span_of(group.z);
  let frames = span_rows(span, params.frames_unit, params.frames);
  if (t >= frames * params.samples_per_frame) {
    return;
  }
  let first = span.x * params.frames_unit;
  // (seed, number of the first sample).
  var key = vec2<u32>(params.seed, params.first_sample);
  if (SPANS) {
    key = spans[group.z].zw;
  }
  let hz = f0[(first + t / params.samples_per_frame) * params.f0_stride];
  let voiced = hz > VOICED_HZ;
  let noise_amplitude = select(SINE_AMPLITUDE / 3.0, NOISE_AMPLITUDE, voiced) * params.noise_scale;
  // Sample t lies (2t + 1 - S) / 2S frames after the centre of frame 0, computed in integers because f32 has no precision to spare; before
  // the first and after the last centre the phase is constant.
  let s = params.samples_per_frame;
  let after_centre = max(2u * t + 1u, s) - s;
  let left = after_centre / (2u * s);
  let right = min(left + 1u, frames - 1u);
  let ahead = select(0.5 * f32(after_centre % (2u * s)), 0.0, right == left);
  let next_hz = f0[(first + right) * params.f0_stride];
  var sum = merge[HARMONICS];
  for (var h = 0u; h < HARMONICS; h++) {
    let step = fract(next_hz * f32(h + 1u) / params.sample_rate);
    let cycles = phase[(first + left) * HARMONICS + h] + ahead * step;
    let sine = precise_sin(6.283185307179586 * (cycles - round(cycles)));
    var value = select(0.0, SINE_AMPLITUDE * sine, voiced);
    if (params.noise_scale > 0.0) {
      value += noise_amplitude * normal(key.x, (key.y + t) * HARMONICS + h);
    }
    sum = fma(merge[h], value, sum);
  }
  out[first * params.samples_per_frame + t] = safe_tanh(sum);
}
