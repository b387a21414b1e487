// out[b, i] = logits[b, i], or the lowest value where row b has a mask (masked[b] != 0) whose bit of token i is 0. logits and out [B,
// stride]; masks [B][ceil(V / 32)], where bit i % 32 of word i / 32 allows token i. One invocation per logit. Reference:
// test/reference/logits.ts.
override WG: u32;

// Finite, so that a later subtraction of two masked values is not NaN.
const LOWEST = -3.4e38;

struct Params {
  rows: u32,
  vocabulary: u32,
  stride: u32,
  words: u32,
}

@group(0) @binding(0) var<storage, read> logits: array<f32>;
@group(0) @binding(1) var<storage, read> masked: array<u32>;
@group(0) @binding(2) var<storage, read> masks: array<u32>;
@group(0) @binding(3) var<storage, read_write> out: array<f32>;
@group(0) @binding(4) var<uniform> params: Params;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let row = group.y;
  let token = group.x * WG + lane;
  if (token >= params.vocabulary) {
    return;
  }
  let at = row * params.stride + token;
  var value = logits[at];
  if (masked[row] != 0u && ((masks[row * params.words + token / 32u] >> (token % 32u)) & 1u) == 0u) {
    value = LOWEST;
  }
  out[at] = value;
}
