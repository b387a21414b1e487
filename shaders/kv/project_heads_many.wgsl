// q, k_pages and v_pages = the query, key and value heads of many rows: project_heads.wgsl without norms of heads, on adapters whose
// subgroup is a SIMD register of 8, with the bits of linear_normed.wgsl and rope_kv_store.wgsl.
//
// A workgroup holds its rows as linear_normed.wgsl does (lib/held_rows.wgsl). It computes `tiles` tiles of two groups of 32 columns:
// channels of a head, and their rotation partners in its other half. Reference: test/reference/norm.ts, linear.ts, kv.ts.
override HAS_NORM: bool;
override HAS_BIAS: bool;

struct Params {
  m: u32,
  n: u32,
  n_weight: u32,
  k4: u32,
  heads: u32,
  kv_heads: u32,
  first_head: u32,
  tiles: u32,
  eps: f32,
}

@group(0) @binding(0) var<storage, read> x: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read> norm: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read> weight: array<weight_t>;
@group(0) @binding(3) var<storage, read> bias: array<vec4<f32>>;
@group(0) @binding(4) var<storage, read> cos_sin: array<vec4<f32>>;
@group(0) @binding(5) var<storage, read> positions: array<u32>;
@group(0) @binding(6) var<storage, read> slots: array<u32>;
@group(0) @binding(7) var<storage, read_write> q: array<vec4<f32>>;
@group(0) @binding(8) var<storage, read_write> k_pages: array<kv_t>;
@group(0) @binding(9) var<storage, read_write> v_pages: array<kv_t>;
@group(0) @binding(10) var<uniform> params: Params;

// First column of the tile that the workgroup computes.
var<private> first: u32;
// Tiles per head.
const PARTS = D8 / 8u;

fn group_column(group: u32) -> u32 {
  return first + group * 4u * D8;
}

fn made_at(group: u32, at: u32) -> vec4<f32> {
  return vec4<f32>(made[group][at], made[group][at + 1u], made[group][at + 2u], made[group][at + 3u]);
}

@compute @workgroup_size(LANES)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(subgroup_invocation_id) lane: u32) {
  let first_row = group.y * BLOCK_ROWS;
  hold_rows(first_row, lane);
  for (var t = 0u; t < params.tiles; t++) {
    let tile = group.x * params.tiles + t;
    if (tile * 64u >= params.n) {
      break;
    }
    let own = tile / PARTS;
    let d = tile % PARTS * 8u + lane;
    first = own * 8u * D8 + tile % PARTS * 32u;
    make_groups(lane);
    let head = params.first_head + own;
    for (var i = 0u; i < min(BLOCK_ROWS, params.m - first_row); i++) {
      var pair = Pair(made_at(0u, i * TILE_N), made_at(1u, i * TILE_N));
      if (HAS_BIAS) {
        let at = head * 2u * D8 + d;
        pair = Pair(pair.low + bias[at], pair.high + bias[at + D8]);
      }
      store_head(first_row + i, head, d, pair);
    }
  }
}
