// out[b, :] = x[indices[b], :]: the rows that get logits, before the vocabulary head. x [T, C4], out [B, C4] of vec4. One invocation per
// four channels. Reference: test/reference/sample.ts.
override WG: u32;

struct Params {
  rows: u32,
  c4: u32,
}

@group(0) @binding(0) var<storage, read> x: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read> indices: array<u32>;
@group(0) @binding(2) var<storage, read_write> out: array<vec4<f32>>;
@group(0) @binding(3) var<uniform> params: Params;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let i = workgroup_index(group, groups) * WG + lane;
  if (i >= params.rows * params.c4) {
    return;
  }
  out[i] = x[indices[i / params.c4] * params.c4 + i % params.c4];
}
