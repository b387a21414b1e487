// x[i] = x[i] * sigmoid(gate[i]), in place; x and gate [4 count4]. One invocation per four elements. Reference:
// test/reference/activation.ts.
override WG: u32;

struct Params {
  count4: u32,
}

@group(0) @binding(0) var<storage, read> gate: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read_write> x: array<vec4<f32>>;
@group(0) @binding(2) var<uniform> params: Params;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let i = workgroup_index(group, groups) * WG + lane;
  if (i >= params.count4) {
    return;
  }
  x[i] = x[i] / (1.0 + exp(-gate[i]));
}
