// out[t, :] = scale * W[ids[t], :] (+ positions[places[t], :] with HAS_POSITIONS). The table W has the layouts of linear weights, floats or
// blocks, so that a tied vocabulary head shares it; positions [S, C]; out [T, C]. Ids from `limit` on are read as 0. Ids outside [first_id,
// first_id + count) belong to another part of a split table: their rows are left alone, or zeroed with CLEAR. One invocation per four
// channels. Reference: test/reference/embedding.ts.
override WG: u32;
override HAS_POSITIONS: bool;
override CLEAR: bool;

struct Params {
  rows: u32,
  k4: u32,
  n_weight: u32,
  first_id: u32,
  count: u32,
  limit: u32,
  scale: f32,
}

@group(0) @binding(0) var<storage, read> ids: array<u32>;
@group(0) @binding(1) var<storage, read> weight: array<weight_t>;
@group(0) @binding(2) var<storage, read> positions: array<vec4<f32>>;
@group(0) @binding(3) var<storage, read> places: array<u32>;
@group(0) @binding(4) var<storage, read_write> out: array<vec4<f32>>;
@group(0) @binding(5) var<uniform> params: Params;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let i = workgroup_index(group, groups) * WG + lane;
  if (i >= params.rows * params.k4) {
    return;
  }
  let row = i / params.k4;
  let c = i % params.k4;
  let id = select(ids[row], 0u, ids[row] >= params.limit);
  if (id < params.first_id || id >= params.first_id + params.count) {
    if (CLEAR) {
      out[i] = vec4<f32>();
    }
    return;
  }
  let column = id - params.first_id;
  let b = c / BLOCK_QUADS;
  let word = c % BLOCK_QUADS / WORD_QUADS;
  var value = block_quad(block_at(b, column), word_at(b, word, column), word, c % WORD_QUADS) * params.scale;
  if (HAS_POSITIONS) {
    value += positions[places[row] * params.k4 + c];
  }
  out[i] = value;
}
