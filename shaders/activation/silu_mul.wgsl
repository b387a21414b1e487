// out[t, i] = silu(gate_up[t, i]) * gate_up[t, I + i]; gate_up [T, 2 I], out [T, I]. One invocation an element.
// Reference: test/reference/activation.ts.
override WG: u32;

struct Params {
  rows: u32,
  columns: u32,
}

@group(0) @binding(0) var<storage, read> gate_up: array<f32>;
@group(0) @binding(1) var<storage, read_write> out: array<f32>;
@group(0) @binding(2) var<uniform> params: Params;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let i = workgroup_index(group, groups) * WG + lane;
  if (i >= params.rows * params.columns) {
    return;
  }
  let row = i / params.columns;
  let column = i % params.columns;
  let at = row * 2u * params.columns + column;
  let gate = gate_up[at];
  out[i] = gate / (1.0 + exp(-gate)) * gate_up[at + params.columns];
}
