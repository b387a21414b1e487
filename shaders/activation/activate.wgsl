// out[i] = f(x[i]), f by ACTIVATION (lib/activation.wgsl); x and out [count]. One invocation per element. Reference:
// test/reference/activation.ts.
override WG: u32;
override ACTIVATION: u32;

struct Params {
  count: u32,
}

@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> out: array<f32>;
@group(0) @binding(2) var<uniform> params: Params;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let i = workgroup_index(group, groups) * WG + lane;
  if (i >= params.count) {
    return;
  }
  out[i] = activate(ACTIVATION, x[i]);
}
