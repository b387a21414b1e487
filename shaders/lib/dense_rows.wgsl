// Attention of dense.wgsl and dense_texels.wgsl, which have the bindings q, tiles, out and params; key_quad(at) and value_quad(at) load
// four channels of a key or value. Keys come in tiles of LANES * KEYS under an online softmax: lanes are keys while scores are computed,
// and channels while values are summed. Lanes exchange values through lib/lanes*.wgsl. A row's sums run over its own keys in order,
// whatever else is in the dispatch.
const LOWEST = -1e30;
// vec4s of channels that a lane holds while values are summed.
const PARTS = (D4 + LANES - 1u) / LANES;

fn attend(group: vec3<u32>, lane: u32) {
  let head = group.y * D4;
  var range = vec2<u32>(0u, params.keys);
  var first_row = group.x * QUERIES;
  var rows = min(QUERIES, params.queries - first_row);
  if (params.tiled == 1u) {
    let tile = tiles[group.z];
    range = tile.xy;
    first_row = tile.z;
    rows = tile.w;
  }
  if (range.y == 0u) {
    return;
  }
  // Rows beyond the last repeat it, and are not written.
  let my_query = (first_row + min(lane, rows - 1u)) * params.q_stride4 + params.q_column4 + head;
  for (var d = 0u; d < params.d4; d++) {
    give_query(d, lane, q[my_query + d]);
  }
  var highest: array<f32, QUERIES>;
  var sum: array<f32, QUERIES>;
  var acc: array<array<vec4<f32>, QUERIES>, PARTS>;
  for (var i = 0u; i < QUERIES; i++) {
    highest[i] = LOWEST;
  }
  for (var start = 0u; start < range.y; start += LANES * KEYS) {
    var key_at: array<u32, KEYS>;
    for (var j = 0u; j < KEYS; j++) {
      key_at[j] = (range.x + min(start + j * LANES + lane, range.y - 1u)) * params.k_stride4 + params.k_column4 + head;
    }
    // Initialised explicitly: in a loop, a bare declaration keeps the values of the previous iteration (Dawn on lavapipe).
    var score = array<array<f32, KEYS>, QUERIES>();
    lanes_barrier();
    for (var d = 0u; d < params.d4; d++) {
      let mine = q[my_query + d];
      var key: array<vec4<f32>, KEYS>;
      for (var j = 0u; j < KEYS; j++) {
        key[j] = key_quad(key_at[j] + d);
      }
      for (var i = 0u; i < QUERIES; i++) {
        let query = take_query(d, i, mine);
        for (var j = 0u; j < KEYS; j++) {
          score[i][j] = fma(query.w, key[j].w, fma(query.z, key[j].z, fma(query.y, key[j].y, fma(query.x, key[j].x, score[i][j]))));
        }
      }
    }
    var tile_max: array<f32, QUERIES>;
    for (var i = 0u; i < QUERIES; i++) {
      tile_max[i] = LOWEST;
      for (var j = 0u; j < KEYS; j++) {
        score[i][j] = select(LOWEST, score[i][j], start + j * LANES + lane < range.y);
        tile_max[i] = max(tile_max[i], score[i][j] * params.scale);
      }
      give_number(i, lane, tile_max[i]);
    }
    lanes_barrier();
    for (var i = 0u; i < QUERIES; i++) {
      var new_max = highest[i];
      for (var s = 0u; s < lane_count(); s++) {
        new_max = max(new_max, take_number(i, s, tile_max[i]));
      }
      let factor = exp2(highest[i] - new_max);
      highest[i] = new_max;
      // Written as fma, because compilers may or may not fuse a product into a sum, and decide differently for different numbers of rows.
      for (var j = 0u; j < KEYS; j++) {
        score[i][j] = select(exp2(fma(score[i][j], params.scale, -new_max)), 0.0, score[i][j] == LOWEST);
        sum[i] = fma(sum[i], select(1.0, factor, j == 0u), score[i][j]);
      }
      for (var p = 0u; p < PARTS; p++) {
        acc[p][i] *= factor;
      }
    }
    // A copy, because lavapipe keeps an array that a variable indexes in memory; the array that accumulates scores stays in registers.
    let weight = score;
    for (var j = 0u; j < turns(KEYS); j++) {
      var mine = array<f32, QUERIES>();
      lanes_barrier();
      for (var i = 0u; i < QUERIES; i++) {
        mine[i] = weight[i][j];
        give_number(i, lane, mine[i]);
      }
      lanes_barrier();
      for (var p = 0u; p < PARTS; p++) {
        let channel = params.v_column4 + head + min(p * LANES + lane, D4 - 1u);
        for (var s = 0u; s < lane_count(); s++) {
          let value = value_quad((range.x + min(start + j * LANES + s, range.y - 1u)) * params.v_stride4 + channel);
          for (var i = 0u; i < QUERIES; i++) {
            acc[p][i] = fma(vec4<f32>(take_number(i, s, mine[i])), value, acc[p][i]);
          }
        }
      }
    }
  }
  lanes_barrier();
  for (var i = 0u; i < QUERIES; i++) {
    give_number(i, lane, sum[i]);
  }
  lanes_barrier();
  for (var i = 0u; i < QUERIES; i++) {
    var total = 0.0;
    for (var s = 0u; s < lane_count(); s++) {
      total += take_number(i, s, sum[i]);
    }
    for (var p = 0u; p < PARTS; p++) {
      let d = p * LANES + lane;
      if (i < rows && d < D4) {
        out[(first_row + i) * params.out_stride4 + head + d] = acc[p][i] / total;
      }
    }
  }
}
