// out[i] = a[i] OP b[i % period], OP 0 = addition, 1 = multiplication; a, out [count], b [period]. A period below the count broadcasts b
// over rows. One invocation per element. Reference: test/reference/elementwise.ts.
override WG: u32;
override OP: u32;

struct Params {
  count: u32,
  period: u32,
}

@group(0) @binding(0) var<storage, read> a: array<f32>;
@group(0) @binding(1) var<storage, read> b: array<f32>;
@group(0) @binding(2) var<storage, read_write> out: array<f32>;
@group(0) @binding(3) var<uniform> params: Params;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let i = workgroup_index(group, groups) * WG + lane;
  if (i >= params.count) {
    return;
  }
  let left = a[i];
  let right = b[i % params.period];
  out[i] = select(left * right, left + right, OP == 0u);
}
