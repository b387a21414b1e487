// sorted = the logits of each row, slice by slice in descending order, each with the cumulative weight down to it:
// sample/slice_threshold.wgsl finds the row's threshold in them.
//
// sorted[r][slice][i] = (order-preserving key, bits of the sum of exp((logit - largest of the slice) / T) over the first i + 1); places
// beyond the vocabulary have key 0 and no weight. stats[r][slice] = (largest, and of the logits that are not ruled out: number, mean, sum
// of squared deviations). r counts from `first_row`. The sums never decrease from one place to the next. One workgroup per slice of WG x
// EACH logits; grid (slices, rows). Rows without cuts are skipped. Reference: test/reference/sample.ts.
const SLICE = WG * EACH;
// At or below this a token is ruled out, by a mask or by a bias.
const RULED_OUT = -1e29;

struct Params {
  vocabulary: u32,
  stride: u32,
  first_row: u32,
  // SLICE as a param, because compilers that know the trip counts of a sort's loops unroll them all.
  size: u32,
}

@group(0) @binding(0) var<storage, read> logits: array<f32>;
@group(0) @binding(1) var<storage, read> rows: array<SamplingRow>;
@group(0) @binding(2) var<storage, read_write> sorted: array<vec2<u32>>;
@group(0) @binding(3) var<storage, read_write> stats: array<vec4<f32>>;
@group(0) @binding(4) var<uniform> params: Params;

var<workgroup> keys: array<u32, SLICE>;
var<workgroup> lane_sums: array<f32, WG>;

// Bitonic sort of the keys, descending.
fn sort(lane: u32) {
  for (var size = 2u; size <= params.size; size *= 2u) {
    for (var step = size / 2u; step > 0u; step /= 2u) {
      for (var pair = lane; pair < params.size / 2u; pair += WG) {
        let i = 2u * pair - (pair & (step - 1u));
        let first = keys[i];
        let second = keys[i + step];
        if ((first < second) == ((i & size) == 0u)) {
          keys[i] = second;
          keys[i + step] = first;
        }
      }
      workgroupBarrier();
    }
  }
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let row = rows[params.first_row + group.y];
  if (row.inverse_temperature == 0.0 || !has_cuts(row)) {
    return;
  }
  let base = (params.first_row + group.y) * params.stride;
  let first = group.x * SLICE;
  let out = group.y * groups.x + group.x;
  var number = 0.0;
  var sum = 0.0;
  for (var i = lane; i < SLICE; i += WG) {
    var key = 0u;
    if (first + i < params.vocabulary) {
      let value = logits[base + first + i];
      key = float_key(value);
      number += select(0.0, 1.0, value > RULED_OUT);
      sum += select(0.0, value, value > RULED_OUT);
    }
    keys[i] = key;
  }
  var mean = 0.0;
  var squares = 0.0;
  if (row.top_n_sigma > 0.0) {
    number = reduce_sum(lane, number);
    mean = reduce_sum(lane, sum) / max(1.0, number);
    for (var i = lane; i < SLICE && first + i < params.vocabulary; i += WG) {
      let value = key_float(keys[i]);
      squares += select(0.0, (value - mean) * (value - mean), value > RULED_OUT);
    }
    squares = reduce_sum(lane, squares);
  }
  workgroupBarrier();
  sort(lane);
  let largest = key_float(keys[0]);
  var weights: array<f32, EACH>;
  var weight = 0.0;
  for (var i = 0u; i < EACH; i++) {
    let key = keys[lane * EACH + i];
    weight += select(exp((key_float(key) - largest) * row.inverse_temperature), 0.0, key == 0u);
    weights[i] = weight;
  }
  lane_sums[lane] = weight;
  workgroupBarrier();
  var before = 0.0;
  for (var i = 0u; i < lane; i++) {
    before += lane_sums[i];
  }
  for (var i = 0u; i < EACH; i++) {
    sorted[out * SLICE + lane * EACH + i] = vec2<u32>(keys[lane * EACH + i], bitcast<u32>(before + weights[i]));
  }
  if (lane == 0u) {
    stats[out] = vec4<f32>(largest, number, mean, squares);
  }
}
