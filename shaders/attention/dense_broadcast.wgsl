// out[t, h] = sum over all keys s of softmax(dot(q[t, h], k[s, h]) * scale) v[s, h]: dense.wgsl for one sequence, on adapters whose
// subgroup is a SIMD register of LANES, with heads of 2 LANES vec4s.
//
// Operands and grid are those of dense.wgsl, with tiles of 3 LANES queries, in three blocks that share the loads of keys and values: loads
// cost most there. Keys come in tiles of 4 LANES under an online softmax. While scores are computed an invocation has four neighbouring
// keys; while values are summed it has two vec4s of channels. Loads stand before the sums they feed, and a loop is either short enough that
// the compiler unrolls it or stays a loop (docs/decisions/attention.md). Reference: test/reference/dense-attention.ts.
const LOWEST = -1e30;
const KEYS = 4u;
// vec4s of channels that a lane holds while values are summed.
const PARTS = D4 / LANES;

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
  // D4 and LANES as params: loops over them are not unrolled.
  d4: u32,
  lanes: u32,
  scale: f32,
}

@group(0) @binding(0) var q: texture_storage_2d<rgba32uint, read>;
@group(0) @binding(1) var k: texture_storage_2d<rgba32uint, read>;
@group(0) @binding(2) var v: texture_storage_2d<rgba32uint, read>;
@group(0) @binding(3) var<storage, read_write> out: array<vec4<f32>>;
@group(0) @binding(4) var<uniform> params: Params;

fn q_at(at: u32) -> vec4<f32> {
  return bitcast<vec4<f32>>(textureLoad(q, vec2<u32>(at % 512u, at / 512u)));
}

fn k_at(at: u32) -> vec4<f32> {
  return bitcast<vec4<f32>>(textureLoad(k, vec2<u32>(at % 512u, at / 512u)));
}

fn v_at(at: u32) -> vec4<f32> {
  return bitcast<vec4<f32>>(textureLoad(v, vec2<u32>(at % 512u, at / 512u)));
}

// State of the online softmax of LANES queries.
struct Block {
  highest: array<f32, LANES>,
  sum: array<f32, LANES>,
  acc: array<array<vec4<f32>, LANES>, PARTS>,
  // Scores of the invocation's own keys, then their weights.
  score: array<array<f32, KEYS>, LANES>,
}

fn start_block(block: ptr<function, Block>) {
  for (var i = 0u; i < LANES; i++) {
    (*block).highest[i] = LOWEST;
  }
}

fn add_scores(block: ptr<function, Block>, mine: vec4<f32>, key: array<vec4<f32>, KEYS>) {
  for (var i = 0u; i < LANES; i++) {
    let query = subgroupShuffle(mine, i);
    for (var j = 0u; j < KEYS; j++) {
      let sum = (*block).score[i][j];
      (*block).score[i][j] = fma(query.w, key[j].w, fma(query.z, key[j].z, fma(query.y, key[j].y, fma(query.x, key[j].x, sum))));
    }
  }
}

// Turns scores into softmax weights; of this invocation's keys, the first `left` exist. Several loops, because the compiler unrolls only
// short ones.
fn weigh(block: ptr<function, Block>, left: u32, lane: u32) {
  var highest: array<f32, LANES>;
  for (var i = 0u; i < LANES; i++) {
    highest[i] = LOWEST;
    for (var j = 0u; j < KEYS; j++) {
      let score = select(LOWEST, (*block).score[i][j] * params.scale, j < left);
      (*block).score[i][j] = score;
      highest[i] = max(highest[i], score);
    }
  }
  var factor: array<f32, LANES>;
  for (var i = 0u; i < LANES; i++) {
    var most = max(highest[i], subgroupShuffle(highest[i], lane ^ 1u));
    most = max(most, subgroupShuffle(most, lane ^ 2u));
    most = max(most, subgroupShuffle(most, lane ^ 4u));
    most = max(most, (*block).highest[i]);
    factor[i] = exp2((*block).highest[i] - most);
    (*block).highest[i] = most;
    (*block).sum[i] *= factor[i];
  }
  for (var i = 0u; i < LANES; i++) {
    for (var j = 0u; j < KEYS; j++) {
      let weight = select(0.0, exp2((*block).score[i][j] - (*block).highest[i]), j < left);
      (*block).score[i][j] = weight;
      (*block).sum[i] += weight;
    }
  }
  for (var i = 0u; i < LANES; i++) {
    (*block).acc[0][i] *= factor[i];
    (*block).acc[1][i] *= factor[i];
  }
}

// Accumulates the weighted values of the KEYS neighbouring keys of `from_lane`.
fn add_values(block: ptr<function, Block>, from_lane: u32, value: array<array<vec4<f32>, KEYS>, PARTS>) {
  for (var i = 0u; i < LANES; i++) {
    var low = (*block).acc[0][i];
    var high = (*block).acc[1][i];
    for (var j = 0u; j < KEYS; j++) {
      let weight = vec4<f32>(subgroupShuffle((*block).score[i][j], from_lane));
      low = fma(weight, value[0][j], low);
      high = fma(weight, value[1][j], high);
    }
    (*block).acc[0][i] = low;
    (*block).acc[1][i] = high;
  }
}

fn total_of(mine: f32, lane: u32) -> f32 {
  let two = mine + subgroupShuffle(mine, lane ^ 1u);
  let four = two + subgroupShuffle(two, lane ^ 2u);
  return four + subgroupShuffle(four, lane ^ 4u);
}

fn finish(block: ptr<function, Block>, first_row: u32, head: u32, lane: u32) {
  for (var i = 0u; i < LANES; i++) {
    (*block).sum[i] = total_of((*block).sum[i], lane);
  }
  for (var i = 0u; i < LANES; i++) {
    let at = (first_row + i) * params.out_stride4 + head + lane;
    if (first_row + i < params.queries) {
      out[at] = (*block).acc[0][i] / (*block).sum[i];
    }
  }
  for (var i = 0u; i < LANES; i++) {
    let at = (first_row + i) * params.out_stride4 + head + lane + LANES;
    if (first_row + i < params.queries) {
      out[at] = (*block).acc[1][i] / (*block).sum[i];
    }
  }
}

@compute @workgroup_size(LANES)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(subgroup_invocation_id) lane: u32) {
  let head = group.y * D4;
  let first_row = group.x * 3u * LANES;
  let column = params.q_column4 + head;
  // Rows beyond the last repeat it, and are not written.
  let last = params.queries - 1u;
  let q0 = min(first_row + lane, last) * params.q_stride4 + column;
  let q1 = min(first_row + LANES + lane, last) * params.q_stride4 + column;
  let q2 = min(first_row + 2u * LANES + lane, last) * params.q_stride4 + column;
  var b0: Block;
  var b1: Block;
  var b2: Block;
  start_block(&b0);
  start_block(&b1);
  start_block(&b2);
  for (var start = 0u; start < params.keys; start += LANES * KEYS) {
    let first_key = start + lane * KEYS;
    var key_at: array<u32, KEYS>;
    for (var j = 0u; j < KEYS; j++) {
      key_at[j] = min(first_key + j, params.keys - 1u) * params.k_stride4 + params.k_column4 + head;
    }
    b0.score = array<array<f32, KEYS>, LANES>();
    b1.score = array<array<f32, KEYS>, LANES>();
    b2.score = array<array<f32, KEYS>, LANES>();
    for (var d = 0u; d < params.d4; d++) {
      var key: array<vec4<f32>, KEYS>;
      for (var j = 0u; j < KEYS; j++) {
        key[j] = k_at(key_at[j] + d);
      }
      let mine0 = q_at(q0 + d);
      let mine1 = q_at(q1 + d);
      let mine2 = q_at(q2 + d);
      add_scores(&b0, mine0, key);
      add_scores(&b1, mine1, key);
      add_scores(&b2, mine2, key);
    }
    let left = max(first_key, params.keys) - first_key;
    weigh(&b0, left, lane);
    weigh(&b1, left, lane);
    weigh(&b2, left, lane);
    for (var s = 0u; s < params.lanes; s++) {
      var value: array<array<vec4<f32>, KEYS>, PARTS>;
      for (var j = 0u; j < KEYS; j++) {
        let at = min(start + s * KEYS + j, params.keys - 1u) * params.v_stride4 + params.v_column4 + head + lane;
        value[0][j] = v_at(at);
        value[1][j] = v_at(at + LANES);
      }
      add_values(&b0, s, value);
      add_values(&b1, s, value);
      add_values(&b2, s, value);
    }
  }
  finish(&b0, first_row, head, lane);
  finish(&b1, first_row + LANES, head, lane);
  finish(&b2, first_row + 2u * LANES, head, lane);
}
