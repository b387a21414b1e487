// out[p, n] = sum_k x[p / x_share, k] * W[e, n, k] (+ bias[e, n] with HAS_BIAS), where e is the expert of pair p: linear_tile.wgsl with
// gathered rows, and with the columns of one of many experts. The order of sums is the same, so a pair's result depends neither on its tile
// nor on TILE_M.
//
// x [T or pairs, K] f32, K a multiple of 4; out [pairs, N]. The weight is one matrix of all experts of this rank, stacked by rows:
// `segment` rows of every expert, then, `segment_step` rows on, the next `segment` rows of every expert (gates, then ups). This binding has
// the `part_count` rows from part_first on; bias has a value for each row of the whole matrix.
// A workgroup computes the TILE_M pairs of a tile (group_rows.wgsl) x (WG * TILE_N) columns, tiles folded into y and z. Without HAS_TILES
// each pair is its own tile, and `tile_experts` holds its expert. Reference: test/reference/experts.ts.
override WG: u32;
override HAS_TILES: bool;
override HAS_BIAS: bool;

struct Params {
  pairs: u32,
  tiles: u32,
  n: u32,
  n_weight: u32,
  k4: u32,
  x_share: u32,
  segment: u32,
  segment_step: u32,
  first_expert: u32,
  experts: u32,
  part_first: u32,
  part_count: u32,
}

@group(0) @binding(0) var<storage, read> x: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read> weight: array<weight_t>;
@group(0) @binding(2) var<storage, read> tile_experts: array<u32>;
@group(0) @binding(3) var<storage, read> tile_pairs: array<u32>;
@group(0) @binding(4) var<storage, read> bias: array<f32>;
@group(0) @binding(5) var<storage, read_write> out: array<f32>;
@group(0) @binding(6) var<uniform> params: Params;

@compute @workgroup_size(WG)
fn main(
  @builtin(workgroup_id) group: vec3<u32>,
  @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_index) lane: u32,
) {
  let tile = group.y + group.z * groups.y;
  // Experts of other ranks, and NO_EXPERT, wrap to numbers beyond this rank's.
  let expert = tile_experts[min(tile, params.tiles - 1u)] - params.first_expert;
  if (tile >= params.tiles || expert >= params.experts) {
    return;
  }
  let first_column = group.x * WG * TILE_N + lane;
  var column: array<u32, TILE_N>;
  var held: array<bool, TILE_N>;
  var any_held = false;
  for (var j = 0u; j < TILE_N; j++) {
    let n = first_column + j * WG;
    let at = n / params.segment * params.segment_step + expert * params.segment + n % params.segment - params.part_first;
    held[j] = n < params.n && at < params.part_count;
    any_held = any_held || held[j];
    column[j] = min(at, params.n_weight - 1u);
  }
  if (!any_held) {
    return;
  }
  var pair: array<u32, TILE_M>;
  var row: array<u32, TILE_M>;
  for (var i = 0u; i < TILE_M; i++) {
    pair[i] = tile;
    if (HAS_TILES) {
      pair[i] = tile_pairs[tile * TILE_M + i];
    }
    row[i] = min(pair[i], params.pairs - 1u) / params.x_share * params.k4;
  }
  var acc: array<array<f32, TILE_N>, TILE_M>;
  var block = array<block_t, TILE_N>();
  for (var b = 0u; b < params.k4 / BLOCK_QUADS; b++) {
    for (var j = 0u; j < TILE_N; j++) {
      block[j] = next_block(block[j], b, column[j]);
    }
    for (var word = 0u; word < BLOCK_WORDS; word++) {
      var packed: array<word_t, TILE_N>;
      for (var j = 0u; j < TILE_N; j++) {
        packed[j] = word_at(b, word, column[j]);
      }
      for (var quad = 0u; quad < WORD_QUADS; quad++) {
        let k = b * BLOCK_QUADS + word * WORD_QUADS + quad;
        var w: array<vec4<f32>, TILE_N>;
        for (var j = 0u; j < TILE_N; j++) {
          w[j] = block_quad(block[j], packed[j], word, quad);
        }
        for (var i = 0u; i < TILE_M; i++) {
          let a = x[row[i] + k];
          for (var j = 0u; j < TILE_N; j++) {
            acc[i][j] = fma(a.w, w[j].w, fma(a.z, w[j].z, fma(a.y, w[j].y, fma(a.x, w[j].x, acc[i][j]))));
          }
        }
      }
    }
  }
  for (var i = 0u; i < TILE_M; i++) {
    if (pair[i] >= params.pairs) {
      continue;
    }
    for (var j = 0u; j < TILE_N; j++) {
      if (held[j]) {
        if (HAS_BIAS) {
          acc[i][j] += bias[params.part_first + column[j]];
        }
        out[pair[i] * params.n + first_column + j * WG] = acc[i][j];
      }
    }
  }
}
