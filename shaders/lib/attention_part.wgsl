// What the SPLIT invocations of paged_attention_wide.wgsl hold of a part of the positions in workgroup memory, and the sums they make of it: in orders that only
// positions and the head's size decide, however many loads are under way at once. Of kernels with params.rounds, k_pages and a fragment of lib/kv_*.wgsl.

// Vectors of a query; groups that share the positions of a part, and the most that one of them has.
const Q4 = D4 + SCALE_ROWS;
const GROUPS = SPLIT / D4;
const TURNS = (SPLIT + GROUPS - 1u) / GROUPS;
// Loads that are under way at once, of LOADS, a power of two: vectors of a key, as many as divide it; numbers of a walk; sums of groups.
const KEY_LOADS = min(LOADS, D4 & (~D4 + 1u));
const WALK_LOADS = min(LOADS, WALKS);
const SUM_LOADS = min(LOADS, GROUPS & (~GROUPS + 1u));
// Vectors that hold a number of each query; as many queries have their groups' sums added in a round.
const QUADS = (QUERIES + 3u) / 4u;
const ROUNDS = (QUERIES + QUADS - 1u) / QUADS;
// Invocations that walk the positions of a query: each as many as it takes.
const WALKS = 16u;

var<workgroup> queries: array<vec4<f32>, QUERIES * Q4>;
// Scores and then weights [QUADS][SPLIT], four queries a vector; then the groups' sums [QUADS][GROUPS][D4].
var<workgroup> held: array<vec4<f32>, QUADS * SPLIT>;
// Where the value of each position lies, and its scale where it has one.
var<workgroup> value_at: array<u32, SPLIT>;
var<workgroup> value_scale: array<f32, SCALE_ROWS * (SPLIT - 1u) + 1u>;
var<workgroup> walked: array<f32, QUERIES * WALKS>;
var<workgroup> maxima: array<f32, QUERIES>;
// What a query's sums before this part are multiplied by, and those of the part; in the end the factor of its sink, and its sum.
var<workgroup> factors: array<vec2<f32>, QUERIES>;

// A number that no compiler knows, so that a loop of as many turns stays a loop: loads written out are what software adapters take seconds to compile.
fn turns(count: u32) -> u32 {
  return count * params.rounds / ROUNDS;
}

// The number of one query at a position of the part.
fn held_number(query: u32, at: u32) -> f32 {
  return held[query / 4u * SPLIT + at][query % 4u];
}

// Leaves a position's numbers, four queries a vector.
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

// The largest number of a query at every WALKS-th position of the part, and their sum.
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

// The same of what the walks found.
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

// The sum of what the groups hold for a vector of the result, the e-th query of the round.
fn groups_sum(e: u32, d4: u32) -> vec4<f32> {
  var result = vec4<f32>();
  for (var first = 0u; first < turns(GROUPS); first += SUM_LOADS) {
    for (var j = 0u; j < SUM_LOADS; j++) {
      result += held[(e * GROUPS + first + j) * D4 + d4];
    }
  }
  return result;
}

// A position's score for each query, of the key at `head_base`.
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
