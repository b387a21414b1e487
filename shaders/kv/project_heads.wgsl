// q, k_pages and v_pages = the query, key and value heads of a few rows of the residual stream: rms_norm.wgsl (HAS_NORM), the merged
// product with its bias (HAS_BIAS), qk_norm.wgsl (HAS_HEAD_NORM) and rope_kv_store.wgsl in one dispatch, with the same bits.
//
// x [T, 4 k4]; W [heads of q, then k, then v][D] rows, of which this dispatch has those from head `first_head` on; q and pages as in
// rope_kv_store.wgsl. D is a multiple of 64.
// On software adapters a workgroup computes one head of ROWS rows, or, where normalised rows are held, `each` heads one after the other
// (lib/groups_rows.wgsl). GPUs have room for more workgroups than there are heads: there HEAD_PARTS workgroups share a head, each with a
// part of both halves (lib/groups_split.wgsl), or one has all of it where heads are normalised. Every workgroup normalises its rows again.
// Reference: test/reference/norm.ts, linear.ts, rope.ts, kv.ts.
override HAS_NORM: bool;
override HAS_BIAS: bool;
override HAS_HEAD_NORM: bool;

struct Params {
  m: u32,
  n_weight: u32,
  k4: u32,
  heads: u32,
  kv_heads: u32,
  first_head: u32,
  each: u32,
  eps: f32,
}

@group(0) @binding(0) var<storage, read> x: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read> norm: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read> weight: array<weight_t>;
// [heads][D]: the bias; with HAS_HEAD_NORM [2][D]: the norm weights of query and of key heads.
@group(0) @binding(3) var<storage, read> of_heads: array<vec4<f32>>;
@group(0) @binding(4) var<storage, read> cos_sin: array<vec4<f32>>;
@group(0) @binding(5) var<storage, read> positions: array<u32>;
@group(0) @binding(6) var<storage, read> slots: array<u32>;
@group(0) @binding(7) var<storage, read_write> q: array<vec4<f32>>;
@group(0) @binding(8) var<storage, read_write> k_pages: array<kv_t>;
@group(0) @binding(9) var<storage, read_write> v_pages: array<kv_t>;
@group(0) @binding(10) var<uniform> params: Params;

const COLUMN_GROUPS = select(2u, D8 / 4u, HEAD_PARTS == 1u);
// Quads of each half of a head that a workgroup computes.
const PART_QUADS = D8 / HEAD_PARTS;

// The head that the workgroup computes, counted from first_head.
var<private> own_head: u32;
// First quad of each half that the workgroup computes.
var<private> first_quad: u32;

fn group_column(group: u32) -> u32 {
  if (HEAD_PARTS > 1u) {
    return own_head * 8u * D8 + 4u * (group * D8 + first_quad);
  }
  return own_head * 8u * D8 + group * 32u;
}

fn head_quad(i: u32, quad: u32) -> vec4<f32> {
  var made = vec4<f32>();
  if (HEAD_PARTS > 1u) {
    made = made_quad(i, quad / D8, quad % D8 - first_quad);
  } else {
    made = made_quad(i, quad / 8u, quad % 8u);
  }
  if (HAS_BIAS) {
    return made + of_heads[(params.first_head + own_head) * 2u * D8 + quad];
  }
  return made;
}

// Computes and stores head first_head + own of ROWS rows.
fn project_head(own: u32, first_row: u32, lane: u32) {
  own_head = own;
  make_groups(first_row, lane);
  let head = params.first_head + own;
  let is_query = head < params.heads;
  let is_value = head >= params.heads + params.kv_heads;
  var squares: array<f32, ROWS>;
  if (HAS_HEAD_NORM) {
    for (var i = 0u; i < ROWS; i++) {
      squares[i] = head_squares(lane, HEAD_LANES, i, 2u * D8);
    }
    squares = reduce_rows(lane, squares);
  }
  for (var i = 0u; i < ROWS; i++) {
    let row = first_row + i;
    if (row >= params.m) {
      continue;
    }
    for (var first = 0u; first < PART_QUADS; first += WG) {
      let d = first_quad + first + lane;
      if (!in_part(first + lane, PART_QUADS)) {
        continue;
      }
      var pair = Pair(head_quad(i, d), head_quad(i, d + D8));
      if (HAS_HEAD_NORM && !is_value) {
        let at = select(2u * D8, 0u, is_query) + d;
        let scale = inverseSqrt(squares[i] / f32(8u * D8) + params.eps);
        pair = Pair(pair.low * scale * of_heads[at], pair.high * scale * of_heads[at + D8]);
      }
      store_head(row, head, d, pair);
    }
  }
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let first_row = group.y * ROWS;
  norm_rows(first_row, lane);
  if (HOLDS) {
    for (var h = 0u; h < params.each; h++) {
      project_head(group.x * params.each + h, first_row, lane);
    }
  } else {
    first_quad = group.x % HEAD_PARTS * PART_QUADS;
    project_head(group.x / HEAD_PARTS, first_row, lane);
  }
}
