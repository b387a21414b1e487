// out[t, h] = sum over s of softmax(dot(q[t, h], k[s]) * scale) v[s] over the positions s with position of t - window < s <= position of t:
// paged_attention.wgsl for GPUs.
//
// Tiles, pages, parts and params are those of paged_attention.wgsl; the order of sums differs. A workgroup has one invocation for each of
// the SPLIT positions of a part, and computes all parts of a tile in order, or one of them (params.partial, z).
// - Scores (lib/attention_part.wgsl): an invocation is a position. It loads its key once, several vec4s at a time (k [P][K][D4][PAGE]:
//   neighbouring invocations read neighbouring memory), for QUERIES queries in workgroup memory.
// - Weights: a query has one maximum over the part. Maximum and sum are reduced by 16 invocations per query, each of which takes every 16th
//   position.
// - Values: an invocation is four channels in one of GROUPS groups (v [P][K][PAGE][D4]: neighbouring invocations read neighbouring
//   channels, then positions). A group sums every GROUPS-th position. The groups' sums are then added in order, for as many queries per
//   round as fit where the weights were.
// So the order of every sum depends only on absolute positions and the head's size: not on the tile, the number of queries or the adapter's
// subgroups, which it does not use. Positions that no row of the tile attends to are not loaded and have weight 0. Reference:
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
  rounds: u32,
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

// The page that holds a position of a sequence (a row of the block table).
fn page_of(sequence: u32, position: u32) -> u32 {
  return block_table[sequence * params.table_stride + position / PAGE];
}

// Loads of values in flight per invocation, fewer than of keys because the accumulators take registers too; and whether a group's last
// loads reach beyond the part.
const VALUE_LOADS = min((LOADS + 1u) / 2u, TURNS);
const IS_RAGGED = SPLIT % (GROUPS * VALUE_LOADS) != 0u;

// Loads a group's values of VALUE_LOADS turns, from `turn` on.
fn values_from(turn: u32, group: u32, d4: u32) -> array<kv_t, VALUE_LOADS> {
  var words = array<kv_t, VALUE_LOADS>();
  for (var j = 0u; j < VALUE_LOADS; j++) {
    words[j] = v_pages[value_at[min((turn + j) * GROUPS + group, SPLIT - 1u)] + d4 * select(1u, PAGE, IN_KEYS)];
  }
  return words;
}

@compute @workgroup_size(SPLIT)
fn main(@builtin(workgroup_id) workgroup: vec3<u32>, @builtin(local_invocation_index) index: u32) {
  let tile = tiles[params.first_tile + workgroup.x];
  let kv_head = workgroup.y / SHARES;
  let first_head = workgroup.y * GROUP;
  let rows = tile.y;
  if (rows == 0u) {
    return;
  }
  let last = tile.w + rows - 1u;
  let partial = params.partial == 1u;
  // The first position that the tile's first row attends to.
  let lowest = tile.w + 1u - min(tile.w + 1u, params.window);
  if (partial && (workgroup.z * SPLIT > last || (workgroup.z + 1u) * SPLIT <= lowest)) {
    return;
  }
  let first_part = select(lowest / SPLIT, workgroup.z, partial);
  let last_part = select(last / SPLIT, workgroup.z, partial);
  // Loaded early, so that it is there as soon as the queries are.
  var page = page_of(tile.z, clamp(first_part * SPLIT + index, lowest, last));
  // A query is (row of the tile, head of the group). Rows beyond the tile's repeat its last row, and are not written.
  for (var at = index; at < QUERIES * Q4; at += SPLIT) {
    let i = at / Q4;
    let row = min(i / GROUP, rows - 1u);
    queries[at] = q[((tile.x + row) * params.heads + first_head + i % GROUP) * Q4 + at % Q4] * query_scale(tile.w + row);
  }
  workgroupBarrier();
  // This invocation has channels d4 of a group while values are summed, and channels d4 of one query per round of the result.
  let group = index / VALUE4;
  let d4 = index % VALUE4;
  var total = array<vec4<f32>, ROUNDS>();
  // Maximum and sum of query `index`, in the first QUERIES invocations.
  var total_max = LOWEST;
  var total_sum = 0.0;
  for (var part = first_part; part <= last_part; part++) {
    let position = part * SPLIT + index;
    let seen = clamp(position, lowest, last);
    let offset = seen % PAGE;
    let head_base = (page * params.kv_heads + kv_head) * Q4 * PAGE;
    var score = array<f32, QUERIES>();
    value_at[index] = head_base + offset * select(VALUE4, 1u, IN_KEYS);
    if (position == seen) {
      score = scores_of(head_base, offset);
    }
    if (SCALE_ROWS > 0u) {
      value_scale[index] = load_scale(v_pages[head_base + D4 * PAGE + offset]);
    }
    for (var i = 0u; i < QUERIES; i++) {
      if (HAS_CAP) {
        // Clamped, because some drivers' tanh overflows for large arguments; beyond 15 it is 1 in f32.
        score[i] = params.soft_cap * tanh(clamp(score[i] / params.soft_cap, -15.0, 15.0));
      }
      let own = tile.w + i / GROUP;
      if (position != seen || position > own || own - position >= params.window) {
        score[i] = LOWEST;
      }
    }
    hold(score, index);
    workgroupBarrier();
    // The first values are loaded while weights are computed. Turns begin at multiples of VALUE_LOADS.
    let start = part * SPLIT;
    let first_turn = (max(lowest, start) - start) / GROUPS / VALUE_LOADS * VALUE_LOADS;
    let end_turn = (min(last - start, SPLIT - 1u) + GROUPS) / GROUPS;
    var next = values_from(first_turn, group, d4);
    if (part < last_part) {
      page = page_of(tile.z, min(position + SPLIT, last));
    }
    let walk_query = index / WALKS;
    if (walk_query < QUERIES) {
      walked[index] = walk_max(walk_query, index % WALKS);
    }
    workgroupBarrier();
    if (index < QUERIES) {
      maxima[index] = walked_max(index);
    }
    workgroupBarrier();
    for (var i = 0u; i < QUERIES; i++) {
      score[i] = select(exp2(score[i] - maxima[i]), 0.0, score[i] == LOWEST);
    }
    hold(score, index);
    workgroupBarrier();
    if (walk_query < QUERIES) {
      walked[index] = walk_sum(walk_query, index % WALKS);
    }
    var acc = array<vec4<f32>, QUERIES>();
    for (var turn = first_turn; turn < end_turn; turn += VALUE_LOADS) {
      let words = next;
      if (turn + VALUE_LOADS < end_turn) {
        next = values_from(turn + VALUE_LOADS, group, d4);
      }
      for (var j = 0u; j < VALUE_LOADS; j++) {
        let at = (turn + j) * GROUPS + group;
        let inside = min(at, SPLIT - 1u);
        var value = load_kv(words[j]);
        if (SCALE_ROWS > 0u) {
          value *= value_scale[inside * SCALE_ROWS];
        }
        for (var quad = 0u; quad < QUADS; quad++) {
          var weight = held[quad * SPLIT + inside];
          if (IS_RAGGED && at >= SPLIT) {
            weight = vec4<f32>();
          }
          for (var c = 0u; c < 4u; c++) {
            let i = quad * 4u + c;
            if (i < QUERIES) {
              acc[i] = fma(vec4<f32>(weight[c]), value, acc[i]);
            }
          }
        }
      }
    }
    workgroupBarrier();
    if (index < QUERIES) {
      let new_max = max(total_max, maxima[index]);
      let old_factor = rescale(total_max, new_max);
      let new_factor = rescale(maxima[index], new_max);
      total_sum = fma(walked_sum(index), new_factor, total_sum * old_factor);
      total_max = new_max;
      factors[index] = vec2<f32>(old_factor, new_factor);
    }
    // Private arrays are indexed by constants only, so that they stay in registers.
    for (var round = 0u; round < params.rounds; round++) {
      for (var e = 0u; e < QUADS; e++) {
        var mine = acc[0];
        for (var i = 1u; i < QUERIES; i++) {
          mine = select(mine, acc[i], i == round * QUADS + e);
        }
        if (group < GROUPS) {
          held[(e * GROUPS + group) * VALUE4 + d4] = mine;
        }
      }
      workgroupBarrier();
      let query = round * QUADS + group;
      if (group < QUADS && query < QUERIES) {
        let sum = groups_sum(group, d4);
        let factor = factors[query];
        for (var i = 0u; i < ROUNDS; i++) {
          total[i] = select(total[i], fma(sum, vec4<f32>(factor.y), total[i] * factor.x), i == round);
        }
      }
      workgroupBarrier();
    }
  }
  if (index < QUERIES) {
    var factor = 1.0;
    if (HAS_SINK && !partial) {
      let sink = LOG2E * sinks[first_head + index % GROUP];
      let new_max = max(total_max, sink);
      factor = rescale(total_max, new_max);
      total_sum = fma(total_sum, factor, exp2(sink - new_max));
    }
    factors[index] = vec2<f32>(factor, total_sum);
    if (partial && index / GROUP < rows) {
      let head_at = (tile.x + index / GROUP) * params.heads + first_head + index % GROUP;
      out[(head_at * params.parts + workgroup.z) * (VALUE4 + 1u) + VALUE4] = vec4<f32>(total_max, total_sum, 0.0, 0.0);
    }
  }
  workgroupBarrier();
  for (var i = 0u; i < ROUNDS; i++) {
    let query = i * QUADS + group;
    if (group < QUADS && query < QUERIES && query / GROUP < rows) {
      let head_at = (tile.x + query / GROUP) * params.heads + first_head + query % GROUP;
      let to = select(head_at * VALUE4, (head_at * params.parts + workgroup.z) * (VALUE4 + 1u), partial);
      var result = total[i];
      if (HAS_SINK && !partial) {
        result *= factors[query].x;
      }
      out[to + d4] = select(result / factors[query].y, result, partial);
    }
  }
}
