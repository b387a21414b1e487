// Scores and reductions of paged_attention_wide.wgsl over one part of SPLIT positions, in workgroup memory. The order of each sum depends
// only on positions and the head's size, whatever the number of loads in flight. Needs params.rounds, k_pages and a lib/kv_*.wgsl fragment.

// vec4s of a query; whether values are the first channels of their keys; groups that share the positions of a part, and the most positions of
// a group.
const Q4 = D4 + SCALE_ROWS;
const IN_KEYS = VALUE4 != D4;
const GROUPS = SPLIT / VALUE4;
const TURNS = (SPLIT + GROUPS - 1u) / GROUPS;
// Loads in flight, at most LOADS, a power of two: vec4s of a key, a divisor of D4; numbers of a walk; sums of groups.
const KEY_LOADS = min(LOADS, D4 & (~D4 + 1u));
const WALK_LOADS = min(LOADS, WALKS);
const SUM_LOADS = min(LOADS, GROUPS & (~GROUPS + 1u));
// vec4s that hold one number per query; and rounds of as many queries, in which the sums of groups are added.
const QUADS = (QUERIES + 3u) / 4u;
const ROUNDS = (QUERIES + QUADS - 1u) / QUADS;
// Invocations per query that reduce over the positions, each every WALKS-th one.
const WALKS = 16u;

var<workgroup> queries: array<vec4<f32>, QUERIES * Q4>;
// Scores, later weights [QUADS][SPLIT], four queries per vec4; then the groups' sums [QUADS][GROUPS][VALUE4].
var<workgroup> held: array<vec4<f32>, QUADS * SPLIT>;
// Index of each position's value in v_pages, and its scale in quantised pages.
var<workgroup> value_at: array<u32, SPLIT>;
var<workgroup> value_scale: array<f32, SCALE_ROWS * (SPLIT - 1u) + 1u>;
var<workgroup> walked: array<f32, QUERIES * WALKS>;
var<workgroup> maxima: array<f32, QUERIES>;
// By query: factors that bring earlier parts, and this part, to their common maximum; after the last part, the factor of the sink and the
// sum.
var<workgroup> factors: array<vec2<f32>, QUERIES>;

// `count`, computed so that no compiler knows it and unrolls a loop of that length: unrolled loads take software adapters seconds to
// compile.
fn turns(count: u32) -> u32 {
  return count * params.rounds / ROUNDS;
}

// The score or weight of a query at a position of the part.
fn held_number(query: u32, at: u32) -> f32 {
  return held[query / 4u * SPLIT + at][query % 4u];
}

// Stores the scores or weights of a position, four queries per vec4.
fn hold(numbers: array<f32, QUERIES>, at: u32) {
  for (var quad = 0u; quad < QUADS; quad++) {
    var four = vec4<f32>();
    for (var c = 0u; c < 4u; c++) {
      if (quad * 4u + c < QUERIES) {
        four[c] = numbers[quad * 4u + c];
      }
    }
    held[quad * SPLIT + at] = four;
  }
}

// Maximum, and below sum, of a query's numbers at every WALKS-th position of the part.
fn walk_max(query: u32, walk: u32) -> f32 {
  var result = LOWEST;
  for (var first = walk; first < turns(SPLIT); first += WALKS * WALK_LOADS) {
    for (var j = 0u; j < WALK_LOADS; j++) {
      result = max(result, held_number(query, first + j * WALKS));
    }
  }
  return result;
}

fn walk_sum(query: u32, walk: u32) -> f32 {
  var result = 0.0;
  for (var first = walk; first < turns(SPLIT); first += WALKS * WALK_LOADS) {
    for (var j = 0u; j < WALK_LOADS; j++) {
      result += held_number(query, first + j * WALKS);
    }
  }
  return result;
}

// Maximum, and below sum, over the results of a query's walks.
fn walked_max(query: u32) -> f32 {
  var result = LOWEST;
  for (var first = 0u; first < turns(WALKS); first += WALK_LOADS) {
    for (var j = 0u; j < WALK_LOADS; j++) {
      result = max(result, walked[query * WALKS + first + j]);
    }
  }
  return result;
}

fn walked_sum(query: u32) -> f32 {
  var result = 0.0;
  for (var first = 0u; first < turns(WALKS); first += WALK_LOADS) {
    for (var j = 0u; j < WALK_LOADS; j++) {
      result += walked[query * WALKS + first + j];
    }
  }
  return result;
}

// Sum over the groups of vec4 d4 of the round's e-th query.
fn groups_sum(e: u32, d4: u32) -> vec4<f32> {
  var result = vec4<f32>();
  for (var first = 0u; first < turns(GROUPS); first += SUM_LOADS) {
    for (var j = 0u; j < SUM_LOADS; j++) {
      result += held[(e * GROUPS + first + j) * VALUE4 + d4];
    }
  }
  return result;
}

// Score of each query with the key at `offset` of the page whose head begins at `head_base`.
fn scores_of(head_base: u32, offset: u32) -> array<f32, QUERIES> {
  var score = array<f32, QUERIES>();
  for (var first = 0u; first < turns(D4); first += KEY_LOADS) {
    var words = array<kv_t, KEY_LOADS>();
    for (var j = 0u; j < KEY_LOADS; j++) {
      words[j] = k_pages[head_base + (first + j) * PAGE + offset];
    }
    for (var j = 0u; j < KEY_LOADS; j++) {
      let key = load_kv(words[j]);
      for (var i = 0u; i < QUERIES; i++) {
        let query = queries[i * Q4 + first + j];
        score[i] = fma(query.w, key.w, fma(query.z, key.z, fma(query.y, key.y, fma(query.x, key.x, score[i]))));
      }
    }
  }
  if (SCALE_ROWS > 0u) {
    let key_word = k_pages[head_base + D4 * PAGE + offset];
    let key_scale = load_key_scale(key_word);
    let counts = load_counts(key_word);
    for (var i = 0u; i < QUERIES; i++) {
      let apart = queries[i * Q4 + Q4 - 1u];
      let others = fma(apart.w, counts.w, fma(apart.z, counts.z, fma(apart.y, counts.y, apart.x * counts.x)));
      score[i] = fma(score[i], key_scale, others);
    }
  }
  return score;
}
