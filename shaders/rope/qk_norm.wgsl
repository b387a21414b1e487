// qkv[t, h] = qkv[t, h] / rms(qkv[t, h]) * weight[h is a key], in place, for the query and key heads of a merged projection (Qwen3), or with all query
// heads as one and all key heads as another (OLMo 2); the value heads behind them too, without a weight (Gemma 4). qkv [T, width]: `heads` times `channels` of queries, `kv_heads` times `key_channels` of keys, and
// values; weight [channels + key_channels]. One workgroup a head of a row. Reference: test/reference/rope.ts.
override WG: u32;

struct Params {
  rows: u32,
  heads: u32,
  kv_heads: u32,
  // K, or 0 where values stay as they are.
  value_heads: u32,
  channels: u32,
  key_channels: u32,
  width: u32,
  eps: f32,
}

@group(0) @binding(0) var<storage, read> weight: array<f32>;
@group(0) @binding(1) var<storage, read_write> qkv: array<f32>;
@group(0) @binding(2) var<uniform> params: Params;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let normed = params.heads + params.kv_heads + params.value_heads;
  let index = workgroup_index(group, groups);
  if (index >= params.rows * normed) {
    return;
  }
  let head = index % normed;
  // Or a value, which lies behind the keys and is as wide.
  let is_key = head >= params.heads;
  let channels = select(params.channels, params.key_channels, is_key);
  let before = select(head * channels, params.heads * params.channels + (head - params.heads) * channels, is_key);
  let base = index / normed * params.width + before;
  var sum = 0.0;
  for (var c = lane; c < channels; c += WG) {
    let v = qkv[base + c];
    sum += v * v;
  }
  let scale = inverseSqrt(reduce_sum(lane, sum) / f32(channels) + params.eps);
  let first = select(0u, params.channels, is_key);
  for (var c = lane; c < channels; c += WG) {
    let value = qkv[base + c] * scale;
    if (head < params.heads + params.kv_heads) {
      qkv[base + c] = value * weight[first + c];
    } else {
      qkv[base + c] = value;
    }
  }
}
