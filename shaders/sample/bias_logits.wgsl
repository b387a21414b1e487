// logits[b, token] += bias for a list of (row, token, bias), in which each (row, token) occurs at most once. logits [B, stride]. One
// invocation per entry. Reference: test/reference/logits.ts.
override WG: u32;

struct Params {
  count: u32,
  stride: u32,
}

struct Entry {
  row: u32,
  token: u32,
  bias: f32,
}

@group(0) @binding(0) var<storage, read> entries: array<Entry>;
@group(0) @binding(1) var<storage, read_write> logits: array<f32>;
@group(0) @binding(2) var<uniform> params: Params;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let i = group.x * WG + lane;
  if (i >= params.count) {
    return;
  }
  let entry = entries[i];
  logits[entry.row * params.stride + entry.token] += entry.bias;
}
