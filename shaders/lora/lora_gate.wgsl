// out[t, i] = f(gates[t, i]) * ups[t, i], f by ACTIVATION (lib/activation.wgsl): lora_expand.wgsl and gate_mul.wgsl in one dispatch. Gates
// are gate_up[t, i] plus the product of low rank of segment 0, ups gate_up[t, I + i] plus that of segment 1 (lib/lora_delta.wgsl), where the
// LoRA adapter of row t has them; other rows have the bits of gate_mul.wgsl. gate_up [T, 2 I], out [T, I]. One invocation per quad of
// columns of a row. Reference: test/reference/lora.ts.
override WG: u32;
override ACTIVATION: u32;

struct Params {
  segments: u32,
  ranks: u32,
  columns4: u32,
  h_stride4: u32,
}

@group(0) @binding(0) var<storage, read> h: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read> loras: array<u32>;
@group(0) @binding(2) var<storage, read> table: array<vec4<u32>>;
@group(0) @binding(3) var<storage, read> b: array<vec4<f32>>;
@group(0) @binding(4) var<storage, read> gate_up: array<vec4<f32>>;
@group(0) @binding(5) var<storage, read_write> out: array<vec4<f32>>;
@group(0) @binding(6) var<uniform> params: Params;

fn changed(row: u32, segment: u32, column: u32) -> vec4<f32> {
  let value = gate_up[(2u * row + segment) * params.columns4 + column];
  let entry = entry_of(row, segment);
  if (entry.z == 0u) {
    return value;
  }
  return value + delta(row, segment, entry, params.columns4, column);
}

@compute @workgroup_size(WG)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
  if (id.x < params.columns4) {
    out[id.y * params.columns4 + id.x] = activate4(changed(id.y, 0u, id.x)) * changed(id.y, 1u, id.x);
  }
}
