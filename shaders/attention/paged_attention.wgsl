// out[t, h] = sum over s of softmax(dot(q[t, h], k[s]) * scale) v[s] over the positions s with position of t - window < s <= position of t:
// causal attention over a paged KV cache.
//
// A tile is (first row, rows, block table row, position of the first row): up to QUERIES / GROUP consecutive rows of one sequence. A
// workgroup computes a tile for GROUP query heads of one key/value head, so each key is loaded once for QUERIES queries; SHARES workgroups
// together cover all query heads of the key/value head. Decodes, prefills and chunks of prefills differ only in their tiles. Lanes are
// positions while scores are computed (k [P][K][D4][PAGE]), and channels while values are summed (v [P][K][PAGE][D4]). Lanes exchange
// values through lib/lanes*.wgsl; lib/pages_*.wgsl loads from pages. Quantised pages end with a row of PAGE words, one per position: the
// scale, and for keys also the counts of the four outlier channels; a query ends with its four factors for these counts
// (kv/rope_kv_store_int8.wgsl).
//
// Positions are cut at absolute multiples of SPLIT into parts, each with its own maximum, sum and weighted values, which are combined in
// order. With params.partial each part (z) has its own workgroup, and paged_attention_reduce.wgsl combines them; both ways give the same
// bits, and neither depends on chunking or on the batch. `partial` is no override, because decodes take both ways and each pipeline is slow
// to compile. Partials: [T][H][parts][VALUE4 + 1] of vec4, of which the last holds (maximum, sum).
// A value has 4 VALUE4 channels. Where that is fewer than a key has, it is the first channels of the key, and v_pages are the pages of keys.
// q is multiplied by params.scale, which includes log2(e), as soft_cap does, and by 1 + growth * log(1 + floor(position of t /
// growth_span)). With HAS_CAP scores become soft_cap * tanh(scores / soft_cap). With HAS_SINK each head has one more score, sinks [H],
// which has no value but takes part in the softmax (https://arxiv.org/abs/2309.17453); it is added after all parts. Reference:
// test/reference/paged-attention.ts.
override HAS_CAP: bool;
override HAS_SINK: bool;

struct Params {
  first_tile: u32,
  heads: u32,
  kv_heads: u32,
  table_stride: u32,
  parts: u32,
  scale: f32,
  lanes: u32,
  window: u32,
  soft_cap: f32,
  growth: f32,
  growth_span: u32,
  partial: u32,
}

@group(0) @binding(0) var<storage, read> q: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read> k_pages: array<kv_t>;
@group(0) @binding(2) var<storage, read> v_pages: array<kv_t>;
@group(0) @binding(3) var<storage, read> block_table: array<u32>;
@group(0) @binding(4) var<storage, read> tiles: array<vec4<u32>>;
@group(0) @binding(5) var<storage, read> sinks: array<f32>;
@group(0) @binding(6) var<storage, read_write> out: array<vec4<f32>>;
@group(0) @binding(7) var<uniform> params: Params;

fn lanes_max(query: u32, mine: f32) -> f32 {
  var result = take_number(query, 0u, mine);
  for (var i = 1u; i < lane_count(); i++) {
    result = max(result, take_number(query, i, mine));
  }
  return result;
}

fn lanes_sum(query: u32, mine: f32) -> f32 {
  var result = take_number(query, 0u, mine);
  for (var i = 1u; i < lane_count(); i++) {
    result += take_number(query, i, mine);
  }
  return result;
}

// vec4s of a query; whether values are the first channels of their keys; loads that cover a value; a lane's share of these loads; vec4s that
// they give it.
const Q4 = D4 + SCALE_ROWS;
const IN_KEYS = VALUE4 != D4;
const V4 = VALUE4 / PAGE_QUADS;
const LOADS = (V4 + LANES - 1u) / LANES;
const SUMS = LOADS * PAGE_QUADS;

@compute @workgroup_size(LANES)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let tile = tiles[params.first_tile + group.x];
  let kv_head = group.y / SHARES;
  let first_head = group.y * GROUP;
  let rows = tile.y;
  if (rows == 0u) {
    return;
  }
  let last = tile.w + rows - 1u;
  let partial = params.partial == 1u;
  // The first position that the tile's first row attends to.
  let lowest = tile.w + 1u - min(tile.w + 1u, params.window);
  if (partial && (group.z * SPLIT > last || (group.z + 1u) * SPLIT <= lowest)) {
    return;
  }
  // A query is (row of the tile, head of the group). Rows beyond the tile's repeat its last row, and are not written.
  var head_at: array<u32, QUERIES>;
  var mine: array<vec4<f32>, QUERIES * SLICES>;
  var apart: array<vec4<f32>, QUERIES>;
  for (var i = 0u; i < QUERIES; i++) {
    let row = min(i / GROUP, rows - 1u);
    let scale = query_scale(tile.w + row);
    head_at[i] = (tile.x + row) * params.heads + first_head + i % GROUP;
    for (var j = 0u; j < SLICES; j++) {
      mine[i * SLICES + j] = q[head_at[i] * Q4 + min(j * LANES + lane, D4 - 1u)] * scale;
      give_query(i * SLICES + j, lane, mine[i * SLICES + j]);
    }
    if (SCALE_ROWS > 0u) {
      apart[i] = q[head_at[i] * Q4 + D4] * scale;
    }
  }
  var total_max: array<f32, QUERIES>;
  var total_sum: array<f32, QUERIES>;
  var total: array<vec4<f32>, QUERIES * SUMS>;
  for (var i = 0u; i < QUERIES; i++) {
    total_max[i] = LOWEST;
  }
  let first_part = select(lowest / SPLIT, group.z, partial);
  let last_part = select(last / SPLIT, group.z, partial);
  for (var part = first_part; part <= last_part; part++) {
    var part_max: array<f32, QUERIES>;
    // Initialised explicitly: in a loop, Dawn (webgpu 0.6.2) otherwise keeps the values of the previous iteration.
    var part_sum = array<f32, QUERIES>();
    var acc = array<vec4<f32>, QUERIES * SUMS>();
    for (var i = 0u; i < QUERIES; i++) {
      part_max[i] = LOWEST;
    }
    let end = min(last + 1u, (part + 1u) * SPLIT);
    // Lanes have the same positions whatever the window, so a row's sums do not depend on the tile.
    for (var start = max(part * SPLIT, lowest / LANES * LANES); start < end; start += LANES) {
      // A lane beyond the last position repeats that one, and a lane before the window repeats its first, both with weight 0: stale pages,
      // and other sequences', may hold anything.
      let position = clamp(start + lane, lowest, last);
      let page = block_table[tile.z * params.table_stride + position / PAGE];
      let head_base = (page * params.kv_heads + kv_head) * (D4 + SCALE_ROWS) * PAGE;
      let scale_at = head_base + D4 * PAGE + position % PAGE;
      let value_at = head_base + position % PAGE * select(VALUE4, 1u, IN_KEYS);
      var score = array<f32, QUERIES>();
      lanes_barrier();
      for (var j = 0u; j < SLICES; j++) {
        for (var from_lane = 0u; from_lane < page_lanes(); from_lane += PAGE_QUADS) {
          let d4 = j * LANES + from_lane;
          if (d4 < D4) {
            let words = key_words(head_base, d4, position % PAGE);
            for (var i = 0u; i < QUERIES; i++) {
              for (var h = 0u; h < PAGE_QUADS; h++) {
                let key = quad_of(words, h);
                let query = take_query(i * SLICES + j, from_lane + h, mine[i * SLICES + j]);
                score[i] = fma(query.w, key.w, fma(query.z, key.z, fma(query.y, key.y, fma(query.x, key.x, score[i]))));
              }
            }
          }
        }
      }
      if (SCALE_ROWS > 0u) {
        let key_word = key_tail(scale_at);
        let key_scale = load_key_scale(key_word);
        let counts = load_counts(key_word);
        for (var i = 0u; i < QUERIES; i++) {
          let others = fma(apart[i].w, counts.w, fma(apart[i].z, counts.z, fma(apart[i].y, counts.y, apart[i].x * counts.x)));
          score[i] = fma(score[i], key_scale, others);
        }
      }
      var weight: array<f32, QUERIES>;
      for (var i = 0u; i < QUERIES; i++) {
        if (HAS_CAP) {
          // Clamped, because some drivers' tanh overflows for large arguments; beyond 15 it is 1 in f32.
          score[i] = params.soft_cap * tanh(clamp(score[i] / params.soft_cap, -15.0, 15.0));
        }
        let own = tile.w + i / GROUP;
        if (start + lane > own || own - (start + lane) >= params.window) {
          score[i] = LOWEST;
        }
        give_number(i, lane, score[i]);
      }
      lanes_barrier();
      for (var i = 0u; i < QUERIES; i++) {
        let new_max = max(part_max[i], lanes_max(i, score[i]));
        let factor = rescale(part_max[i], new_max);
        weight[i] = select(exp2(score[i] - new_max), 0.0, score[i] == LOWEST);
        part_sum[i] = fma(part_sum[i], factor, weight[i]);
        part_max[i] = new_max;
        for (var j = 0u; j < SUMS; j++) {
          acc[i * SUMS + j] *= factor;
        }
      }
      if (SCALE_ROWS > 0u) {
        // The scale of a value multiplies its weight, after the unscaled weight has been added to the sum.
        let value_scale = load_scale(value_tail(scale_at));
        for (var i = 0u; i < QUERIES; i++) {
          weight[i] *= value_scale;
        }
      }
      lanes_barrier();
      for (var i = 0u; i < QUERIES; i++) {
        give_number(i, lane, weight[i]);
      }
      give_index(lane, value_at);
      lanes_barrier();
      for (var s = 0u; s < page_lanes(); s++) {
        let value_base = take_index(s, value_at);
        for (var j = 0u; j < LOADS; j++) {
          let words = value_words(value_base, min(j * LANES + lane, V4 - 1u));
          for (var i = 0u; i < QUERIES; i++) {
            let share = vec4<f32>(take_number(i, s, weight[i]));
            for (var h = 0u; h < PAGE_QUADS; h++) {
              let at = i * SUMS + j * PAGE_QUADS + h;
              acc[at] = fma(share, quad_of(words, h), acc[at]);
            }
          }
        }
      }
    }
    lanes_barrier();
    for (var i = 0u; i < QUERIES; i++) {
      give_number(i, lane, part_sum[i]);
    }
    lanes_barrier();
    for (var i = 0u; i < QUERIES; i++) {
      part_sum[i] = lanes_sum(i, part_sum[i]);
      let new_max = max(total_max[i], part_max[i]);
      let old_factor = rescale(total_max[i], new_max);
      let new_factor = rescale(part_max[i], new_max);
      total_sum[i] = fma(part_sum[i], new_factor, total_sum[i] * old_factor);
      total_max[i] = new_max;
      for (var j = i * SUMS; j < i * SUMS + SUMS; j++) {
        total[j] = fma(acc[j], vec4<f32>(new_factor), total[j] * old_factor);
      }
    }
  }
  for (var i = 0u; i < QUERIES; i++) {
    if (i / GROUP < rows) {
      if (HAS_SINK && !partial) {
        let sink = LOG2E * sinks[first_head + i % GROUP];
        let new_max = max(total_max[i], sink);
        let factor = rescale(total_max[i], new_max);
        total_sum[i] = fma(total_sum[i], factor, exp2(sink - new_max));
        for (var j = 0u; j < SUMS; j++) {
          total[i * SUMS + j] *= factor;
        }
      }
      let to = select(head_at[i] * VALUE4, (head_at[i] * params.parts + group.z) * (VALUE4 + 1u), partial);
      for (var j = 0u; j < SUMS; j++) {
        let load = j / PAGE_QUADS * LANES + lane;
        if (load < V4) {
          out[to + load + j % PAGE_QUADS * V4] = select(total[i * SUMS + j] / total_sum[i], total[i * SUMS + j], partial);
        }
      }
      if (partial && lane == 0u) {
        out[to + VALUE4] = vec4<f32>(total_max[i], total_sum[i], 0.0, 0.0);
      }
    }
  }
}
