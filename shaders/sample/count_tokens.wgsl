// counts[slot, sampled[b]] += 1 for penalize_logits.wgsl; counts [slots][V], whose rows the host initialises. Rows with slot NO_SLOT are
// not counted. One invocation per row. Reference: test/reference/logits.ts.
override WG: u32;

const NO_SLOT = 0xffffffffu;

struct Params {
  rows: u32,
  vocabulary: u32,
}

@group(0) @binding(0) var<storage, read> slots: array<u32>;
@group(0) @binding(1) var<storage, read> sampled: array<u32>;
@group(0) @binding(2) var<storage, read_write> counts: array<atomic<u32>>;
@group(0) @binding(3) var<uniform> params: Params;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let row = group.x * WG + lane;
  if (row >= params.rows || slots[row] == NO_SLOT) {
    return;
  }
  atomicAdd(&counts[slots[row] * params.vocabulary + sampled[row]], 1u);
}
