// qkv[t, h] = r / rms(r) * weight[h is a key] with r = rotate(qkv[t, h], positions[t]), in place, for the query and key heads of a merged
// projection (Hunyuan).
//
// qkv [T, H + 2 K, D], heads of q, then k, then v; [T, H, D] where K is 0. weight [2, D], of queries and of keys. Rotation and cos_sin as in
// rope_kv_store.wgsl. One workgroup per head of a row; an invocation reads and writes the same channels. Reference: test/reference/rope.ts.
override WG: u32;
override D8: u32;

struct Params {
  rows: u32,
  heads: u32,
  kv_heads: u32,
  eps: f32,
}

@group(0) @binding(0) var<storage, read> weight: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read> cos_sin: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read> positions: array<u32>;
@group(0) @binding(3) var<storage, read_write> qkv: array<vec4<f32>>;
@group(0) @binding(4) var<uniform> params: Params;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let normed = params.heads + params.kv_heads;
  let index = workgroup_index(group, groups);
  if (index >= params.rows * normed) {
    return;
  }
  let head = index % normed;
  let row = index / normed;
  let first = (row * (normed + params.kv_heads) + head) * 2u * D8;
  let position = positions[row];
  var squares = 0.0;
  for (var d = lane; d < D8; d += WG) {
    let pair = turned(Pair(qkv[first + d], qkv[first + d + D8]), position, d);
    squares += dot(pair.low, pair.low) + dot(pair.high, pair.high);
  }
  let scale = inverseSqrt(reduce_sum(lane, squares) / f32(8u * D8) + params.eps);
  let first_weight = select(0u, 2u * D8, head >= params.heads);
  for (var d = lane; d < D8; d += WG) {
    let pair = turned(Pair(qkv[first + d], qkv[first + d + D8]), position, d);
    qkv[first + d] = pair.low * scale * weight[first_weight + d];
    qkv[first + d + D8] = pair.high * scale * weight[first_weight + d + D8];
  }
}
