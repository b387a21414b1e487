// counts[slot, token] for penalize_logits.wgsl: PROMPT marks a list of (slot, token) as seen in a prompt, otherwise the tokens just sampled are counted
// for their slots. One invocation an entry. Reference: test/reference/logits.ts.
override WG: u32;
override PROMPT: bool;

const IN_PROMPT = 0x80000000u;
const NO_SLOT = 0xffffffffu;

struct Params {
  count: u32,
  vocabulary: u32,
}

// (slot, token); for sampled rows the token is in `sampled`, and NO_SLOT rows are not counted.
@group(0) @binding(0) var<storage, read> entries: array<vec2<u32>>;
@group(0) @binding(1) var<storage, read> sampled: array<u32>;
@group(0) @binding(2) var<storage, read_write> counts: array<atomic<u32>>;
@group(0) @binding(3) var<uniform> params: Params;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let i = group.x * WG + lane;
  if (i >= params.count) {
    return;
  }
  let slot = entries[i].x;
  if (slot == NO_SLOT) {
    return;
  }
  if (PROMPT) {
    atomicOr(&counts[slot * params.vocabulary + entries[i].y], IN_PROMPT);
  } else {
    atomicAdd(&counts[slot * params.vocabulary + sampled[i]], 1u);
  }
}
