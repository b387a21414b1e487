// out[t, h] = sum over the keys s of t's sequence of softmax(dot(q[t, h], k[s, h]) * scale) v[s, h]: attention without a causal mask, D = 4
// D4 channels per head.
//
// A workgroup computes up to QUERIES rows of one head. One sequence: rows 0 to queries - 1 of q and out, rows 0 to keys - 1 of k and v;
// grid (query tiles, heads). Several sequences: tiles[z] = (first key row, keys, first query row, query rows); grid (1, heads, tiles). q, k
// and v may be columns of one merged projection. lib/dense_rows.wgsl computes the sums. Reference: test/reference/dense-attention.ts.
struct Params {
  queries: u32,
  keys: u32,
  q_stride4: u32,
  q_column4: u32,
  k_stride4: u32,
  k_column4: u32,
  v_stride4: u32,
  v_column4: u32,
  out_stride4: u32,
  // D4 and LANES as params: loops over them are not unrolled, which would take software adapters half a minute to compile.
  d4: u32,
  lanes: u32,
  scale: f32,
  // 1 = several sequences. A param and not an override, so that encoders and decoders share a pipeline.
  tiled: u32,
}

@group(0) @binding(0) var<storage, read> q: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read> k: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read> v: array<vec4<f32>>;
@group(0) @binding(3) var<storage, read> tiles: array<vec4<u32>>;
@group(0) @binding(4) var<storage, read_write> out: array<vec4<f32>>;
@group(0) @binding(5) var<uniform> params: Params;

fn value_quad(at: u32) -> vec4<f32> {
  return v[at];
}

@compute @workgroup_size(LANES)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  attend(group, lane);
}
