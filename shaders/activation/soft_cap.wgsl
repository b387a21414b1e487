// x[i] = cap * tanh(x[i] / cap), in place; x [count]. One invocation per element. Reference: test/reference/activation.ts.
override WG: u32;

struct Params {
  count: u32,
  cap: f32,
}

@group(0) @binding(0) var<storage, read_write> x: array<f32>;
@group(0) @binding(1) var<uniform> params: Params;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let i = workgroup_index(group, groups) * WG + lane;
  if (i < params.count) {
    // Clamped, because some drivers' tanh overflows for large arguments; beyond 15 it is 1 in f32.
    x[i] = params.cap * tanh(clamp(x[i] / params.cap, -15.0, 15.0));
  }
}
