// weights[head, first_out + t, s] = softmax over s of dot(q[first_row + t, head], k[first_key + s, head]) * scale for one head: the weights
// by which dense attention multiplies values. Heads have D = 4 d4 channels; weights [H, rows, positions]. One workgroup per row t; each
// lane owns the keys s = lane, lane + WG, ..., so it reads back only weights that it wrote itself. Reference: test/reference/alignment.ts.
override WG: u32;

const LOWEST = -1e30;

struct Params {
  keys: u32,
  first_key: u32,
  first_row: u32,
  // Index in `weights` of row t = 0.
  out_at: u32,
  out_stride: u32,
  q_stride4: u32,
  k_stride4: u32,
  // First vector of the head in a row of q and of k.
  head4: u32,
  d4: u32,
  scale: f32,
}

@group(0) @binding(0) var<storage, read> q: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read> k: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read_write> weights: array<f32>;
@group(0) @binding(3) var<uniform> params: Params;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let query = (params.first_row + group.x) * params.q_stride4 + params.head4;
  let out = params.out_at + group.x * params.out_stride;
  var highest = LOWEST;
  for (var s = lane; s < params.keys; s += WG) {
    let key = (params.first_key + s) * params.k_stride4 + params.head4;
    var score = 0.0;
    for (var d = 0u; d < params.d4; d++) {
      score += dot(q[query + d], key_quad(key + d));
    }
    score *= params.scale;
    weights[out + s] = score;
    highest = max(highest, score);
  }
  highest = reduce_max(lane, highest);
  var sum = 0.0;
  for (var s = lane; s < params.keys; s += WG) {
    let weight = exp(weights[out + s] - highest);
    weights[out + s] = weight;
    sum += weight;
  }
  let total = reduce_sum(lane, sum);
  for (var s = lane; s < params.keys; s += WG) {
    weights[out + s] /= total;
  }
}
