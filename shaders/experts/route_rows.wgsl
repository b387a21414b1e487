// The experts of a row: the `k` with the largest logits, the best first, and their shares of a softmax over all (Shazeer 2017,
// https://arxiv.org/abs/1701.06538). logits [T, E]; chosen and shares [T, k]. Of equal logits the first is chosen.
//
// An invocation has an expert of a row and counts those before it: no barriers, no sorting, and the same sum in every invocation. Grid (E / WG, T).
// Reference: test/reference/experts.ts.
override WG: u32;

struct Params {
  rows: u32,
  experts: u32,
  k: u32,
}

@group(0) @binding(0) var<storage, read> logits: array<f32>;
@group(0) @binding(1) var<storage, read_write> chosen: array<u32>;
@group(0) @binding(2) var<storage, read_write> shares: array<f32>;
@group(0) @binding(3) var<uniform> params: Params;

@compute @workgroup_size(WG)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
  let expert = id.x;
  let row = id.y;
  if (expert >= params.experts || row >= params.rows) {
    return;
  }
  let first = row * params.experts;
  let mine = logits[first + expert];
  var largest = mine;
  var rank = 0u;
  for (var i = 0u; i < params.experts; i++) {
    let other = logits[first + i];
    largest = max(largest, other);
    rank += u32(other > mine || (other == mine && i < expert));
  }
  if (rank >= params.k) {
    return;
  }
  var sum = 0.0;
  for (var i = 0u; i < params.experts; i++) {
    sum += exp(logits[first + i] - largest);
  }
  chosen[row * params.k + rank] = expert;
  shares[row * params.k + rank] = exp(mine - largest) / sum;
}
