// The pages get the key of row t at slots[t]: (c / rms(c) * norm, rotate(k, positions[t])) of x[t] = (c, k), the one key of multi-head latent
// attention, whose first R channels are the value too (DeepSeek-V2, https://arxiv.org/abs/2405.04434).
//
// x [T, R + P], norm [R]; R a multiple of 4, P of 8. Pages [pages][(R + P) / 4][PAGE], as those of keys in rope_kv_store.wgsl with one head;
// rows with slot 0xffffffff are padding and store nothing. Rotation and cos_sin as there, over the P channels. One workgroup per row.
// Reference: test/reference/latent.ts.
override WG: u32;
// R / 4 and P / 8.
override R4: u32;
override D8: u32;

const PADDING = 0xffffffffu;

struct Params {
  rows: u32,
  eps: f32,
}

@group(0) @binding(0) var<storage, read> x: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read> norm: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read> cos_sin: array<vec4<f32>>;
@group(0) @binding(3) var<storage, read> positions: array<u32>;
@group(0) @binding(4) var<storage, read> slots: array<u32>;
@group(0) @binding(5) var<storage, read_write> k_pages: array<kv_t>;
@group(0) @binding(6) var<uniform> params: Params;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let row = workgroup_index(group, groups);
  if (row >= params.rows) {
    return;
  }
  let slot = slots[row];
  if (slot == PADDING) {
    return;
  }
  let first = row * (R4 + 2u * D8);
  var squares = 0.0;
  for (var i = lane; i < R4; i += WG) {
    squares += dot(x[first + i], x[first + i]);
  }
  let scale = inverseSqrt(reduce_sum(lane, squares) / f32(4u * R4) + params.eps);
  let to = slot / PAGE * (R4 + 2u * D8) * PAGE + slot % PAGE;
  for (var i = lane; i < R4; i += WG) {
    k_pages[to + i * PAGE] = store_kv(x[first + i] * scale * norm[i]);
  }
  for (var d = lane; d < D8; d += WG) {
    let pair = turned(Pair(x[first + R4 + d], x[first + R4 + d + D8]), positions[row], d);
    k_pages[to + (R4 + d) * PAGE] = store_kv(pair.low);
    k_pages[to + (R4 + d + D8) * PAGE] = store_kv(pair.high);
  }
}
