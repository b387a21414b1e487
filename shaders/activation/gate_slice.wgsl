// out[t, i] = f(gate[t, i]) * x[t, first + i], f by ACTIVATION (lib/activation.wgsl); gate and out [T, I], x [T, N]; I, N and first are
// multiples of 4. One invocation per four elements; grid (I / 4 / WG, T). Reference: test/reference/activation.ts.
override WG: u32;
override ACTIVATION: u32;

struct Params {
  columns4: u32,
  rows: u32,
  first4: u32,
  stride4: u32,
}

@group(0) @binding(0) var<storage, read> gate: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read> x: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read_write> out: array<vec4<f32>>;
@group(0) @binding(3) var<uniform> params: Params;

@compute @workgroup_size(WG)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
  if (id.x >= params.columns4 || id.y >= params.rows) {
    return;
  }
  let at = id.y * params.columns4 + id.x;
  let v = gate[at];
  let activated = vec4<f32>(activate(ACTIVATION, v.x), activate(ACTIVATION, v.y), activate(ACTIVATION, v.z), activate(ACTIVATION, v.w));
  out[at] = activated * x[id.y * params.stride4 + params.first4 + id.x];
}
