// qkv[t, h] = qkv[t, h] / rms(qkv[t, h]) * weight[h is a key], in place, for the query and key heads of a merged projection (Qwen3), or
// with all query heads as one head and all key heads as another (OLMo 2). The value heads behind them are normalised too, without a weight,
// where value_heads > 0 (Gemma 4).
//
// qkv [T, width]: `heads` times `channels` of queries, `kv_heads` times `key_channels` of keys, then values, all multiples of 4; weight
// [channels + key_channels]. One workgroup per head of a row. Reference: test/reference/rope.ts.
override WG: u32;

struct Params {
  rows: u32,
  heads: u32,
  kv_heads: u32,
  // K, or 0 where values are not normalised.
  value_heads: u32,
  channels: u32,
  key_channels: u32,
  width: u32,
  eps: f32,
}

@group(0) @binding(0) var<storage, read> weight: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read_write> qkv: array<vec4<f32>>;
@group(0) @binding(2) var<uniform> params: Params;

fn head_quad(first: u32, quad: u32) -> vec4<f32> {
  return qkv[first + quad];
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let normed = params.heads + params.kv_heads + params.value_heads;
  let index = workgroup_index(group, groups);
  if (index >= params.rows * normed) {
    return;
  }
  let head = index % normed;
  // True for values too, which follow the keys and are as wide.
  let is_key = head >= params.heads;
  let channels = select(params.channels, params.key_channels, is_key);
  let before = select(head * channels, params.heads * params.channels + (head - params.heads) * channels, is_key);
  let first = (index / normed * params.width + before) / 4u;
  let squares = reduce_sum(lane, head_squares(lane, WG, first, channels / 4u));
  let scale = inverseSqrt(squares / f32(channels) + params.eps);
  let first_weight = select(0u, params.channels / 4u, is_key);
  for (var d = lane; d < channels / 4u; d += WG) {
    let value = qkv[first + d] * scale;
    if (head < params.heads + params.kv_heads) {
      qkv[first + d] = value * weight[first_weight + d];
    } else {
      qkv[first + d] = value;
    }
  }
}
