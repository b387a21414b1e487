// out[t, i] = (clamp(up, -limit, limit) + 1) * g * sigmoid(alpha * g) with g = min(gate, limit), the gate of gpt-oss. gate_up [T, 2 I], out
// [T, I], I a multiple of 4. A row of gate_up holds all gates, then all ups; with ALTERNATING, a gate and its up in turn. One invocation
// per four elements; grid (I / 4 / WG, T), T folded into y and z.
// Reference: test/reference/activation.ts.
override WG: u32;
override ALTERNATING: bool;

struct Params {
  columns4: u32,
  rows: u32,
  alpha: f32,
  limit: f32,
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
  let first = row * 2u * params.columns4;
  var gate = gate_up[first + select(id.x, 2u * id.x, ALTERNATING)];
  var up = gate_up[first + select(params.columns4 + id.x, 2u * id.x + 1u, ALTERNATING)];
  if (ALTERNATING) {
    let pairs = gate;
    gate = vec4<f32>(pairs.xz, up.xz);
    up = vec4<f32>(pairs.yw, up.yw);
  }
  gate = min(gate, vec4<f32>(params.limit));
  up = clamp(up, vec4<f32>(-params.limit), vec4<f32>(params.limit));
  out[row * params.columns4 + id.x] = (up + 1.0) * gate / (1.0 + exp(-params.alpha * gate));
}
