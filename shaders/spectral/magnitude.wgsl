// out[f, k] = |z| with z = x[f, k] + i x[f, bins + k]: magnitudes of a spectrum. x [frames, 2 bins], out [frames, bins]. One invocation per
// bin. Reference: test/reference/spectral.ts.
override WG: u32;

struct Params {
  frames: u32,
  bins: u32,
}

@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> out: array<f32>;
@group(0) @binding(2) var<uniform> params: Params;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let i = workgroup_index(group, groups) * WG + lane;
  if (i >= params.frames * params.bins) {
    return;
  }
  let at = (i / params.bins) * 2u * params.bins + i % params.bins;
  let re = x[at];
  let im = x[at + params.bins];
  out[i] = sqrt(re * re + im * im);
}
