// out[l, out_column + c] = x[index[l], c]: repeats each token's row for the frames that it lasts. x [T, x_stride], out [L, out_stride]. One
// invocation per value.
override WG: u32;

struct Params {
  rows: u32,
  columns: u32,
  x_stride: u32,
  out_stride: u32,
  out_column: u32,
}

@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read> index: array<u32>;
@group(0) @binding(2) var<storage, read_write> out: array<f32>;
@group(0) @binding(3) var<uniform> params: Params;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let i = workgroup_index(group, groups) * WG + lane;
  let row = i / params.columns;
  if (row >= params.rows) {
    return;
  }
  let c = i % params.columns;
  out[row * params.out_stride + params.out_column + c] = x[index[row] * params.x_stride + c];
}
