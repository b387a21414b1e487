// ids[t] = tokens[t], or, where its top bit is set, last_tokens[tokens[t] - 2^31]: the token that the previous step sampled for that
// running sequence, which the host has not seen yet. tokens and ids [T], last_tokens [running sequences]. One invocation per row.
// Reference: test/reference/sample.ts.
override WG: u32;

const FROM_DEVICE = 0x80000000u;

struct Params {
  rows: u32,
}

@group(0) @binding(0) var<storage, read> tokens: array<u32>;
@group(0) @binding(1) var<storage, read> last_tokens: array<u32>;
@group(0) @binding(2) var<storage, read_write> ids: array<u32>;
@group(0) @binding(3) var<uniform> params: Params;

@compute @workgroup_size(WG)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
  if (id.x >= params.rows) {
    return;
  }
  let token = tokens[id.x];
  if (token < FROM_DEVICE) {
    ids[id.x] = token;
  } else {
    ids[id.x] = last_tokens[token - FROM_DEVICE];
  }
}
