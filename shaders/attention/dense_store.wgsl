// cache[slots[t], c] = x[t, first + c]: stores the keys and values of new rows in a cache that dense attention reads. x [T, stride], cache
// [S, C]; first, stride and C are multiples of 4. One invocation per four channels. Reference: test/reference/dense-attention.ts.
override WG: u32;

struct Params {
  rows: u32,
  c4: u32,
  x_stride4: u32,
  x_column4: u32,
}

@group(0) @binding(0) var<storage, read> x: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read> slots: array<u32>;
@group(0) @binding(2) var<storage, read_write> cache: array<vec4<f32>>;
@group(0) @binding(3) var<uniform> params: Params;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let i = workgroup_index(group, groups) * WG + lane;
  if (i >= params.rows * params.c4) {
    return;
  }
  let row = i / params.c4;
  let c = i % params.c4;
  cache[slots[row] * params.c4 + c] = x[row * params.x_stride4 + params.x_column4 + c];
}
