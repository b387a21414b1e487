// x[pairs[i].y, :] = x[pairs[i].x, :] for every pair: copies rows of a tensor to other rows of it. No row may be both read and written. x
// [T, C4] of vec4. One invocation per four channels. Reference: test/reference/sample.ts.
override WG: u32;

struct Params {
  count: u32,
  c4: u32,
}

@group(0) @binding(0) var<storage, read_write> x: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read> pairs: array<vec2<u32>>;
@group(0) @binding(2) var<uniform> params: Params;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let i = workgroup_index(group, groups) * WG + lane;
  if (i >= params.count * params.c4) {
    return;
  }
  let pair = pairs[i / params.c4];
  x[pair.y * params.c4 + i % params.c4] = x[pair.x * params.c4 + i % params.c4];
}
