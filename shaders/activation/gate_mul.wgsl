// out[t, i] = f(gate_up[t, i]) * gate_up[t, I + i], f by ACTIVATION (lib/activation.wgsl); gate_up [T, 2 I], out [T, I], I a multiple of 4.
// One invocation per four elements; grid (I / 4 / WG, T), T folded into y and z.
// Nothing is divided by a variable: on software adapters that would cost more than all the rest. Reference: test/reference/activation.ts.
override WG: u32;
override ACTIVATION: u32;

struct Params {
  columns4: u32,
  rows: u32,
}

@group(0) @binding(0) var<storage, read> gate_up: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read_write> out: array<vec4<f32>>;
@group(0) @binding(2) var<uniform> params: Params;

@compute @workgroup_size(WG)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
  let row = id.y + id.z * groups.y;
  if (id.x >= params.columns4 || row >= params.rows) {
    return;
  }
  let at = row * 2u * params.columns4 + id.x;
  out[row * params.columns4 + id.x] = activate4(gate_up[at]) * gate_up[at + params.columns4];
}
