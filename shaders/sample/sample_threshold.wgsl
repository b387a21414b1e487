// thresholds[b] = the smallest logit of row b that its cuts keep: top-k, then top-p, then min-p and top-n-sigma, which keep logits within a
// distance of the largest. Exact over the whole vocabulary, ties kept.
//
// logits [B, stride], of which the first V of a row are used. Top-k is a radix select on order-preserving keys, BITS of the key per round,
// with a histogram of counts in which each invocation has its own column (no atomics, so sums have one order). Top-p is the same search
// with weights exp((logit - max) / T) in place of counts, among what top-k kept. One workgroup per row; greedy rows are skipped. Reference:
// test/reference/sample.ts.
override WG: u32;
override BITS: u32;

const LOWEST = -3.4e38;
// At or below this a token is ruled out, by a mask or by a bias.
const RULED_OUT = -1e29;

struct Params {
  vocabulary: u32,
  stride: u32,
}

@group(0) @binding(0) var<storage, read> logits: array<f32>;
@group(0) @binding(1) var<storage, read> rows: array<SamplingRow>;
@group(0) @binding(2) var<storage, read_write> thresholds: array<f32>;
@group(0) @binding(3) var<uniform> params: Params;

var<workgroup> histogram: array<f32, WG << BITS>;
var<workgroup> lane_values: array<vec2<f32>, WG>;
// The chosen bucket, and the weight above it.
var<workgroup> chosen: vec2<f32>;

fn row_max(base: u32, lane: u32) -> f32 {
  var best = LOWEST;
  for (var i = lane; i < params.vocabulary; i += WG) {
    best = max(best, logits[base + i]);
  }
  lane_values[lane] = vec2<f32>(best);
  workgroupBarrier();
  for (var i = 0u; i < WG; i++) {
    best = max(best, lane_values[i].x);
  }
  workgroupBarrier();
  return best;
}

// Sum of the lanes' values, always in the same order.
fn lane_sum(lane: u32, values: vec2<f32>) -> vec2<f32> {
  lane_values[lane] = values;
  workgroupBarrier();
  var sum = vec2<f32>();
  for (var i = 0u; i < WG; i++) {
    sum += lane_values[i];
  }
  workgroupBarrier();
  return sum;
}

// Sum of exp((logit - top) / T) over the logits with key >= least.
fn mass_above(base: u32, lane: u32, least: u32, top: f32, inverse_temperature: f32) -> f32 {
  var sum = 0.0;
  for (var i = lane; i < params.vocabulary; i += WG) {
    let value = logits[base + i];
    if (float_key(value) >= least) {
      sum += exp((value - top) * inverse_temperature);
    }
  }
  return lane_sum(lane, vec2<f32>(sum, 0.0)).x;
}

// Standard deviation of the logits that are not ruled out.
fn deviation(base: u32, lane: u32) -> f32 {
  // Their number, and their sum.
  var all = vec2<f32>();
  for (var i = lane; i < params.vocabulary; i += WG) {
    let value = logits[base + i];
    if (value > RULED_OUT) {
      all += vec2<f32>(1.0, value);
    }
  }
  all = lane_sum(lane, all);
  let number = max(1.0, all.x);
  let mean = all.y / number;
  var squares = 0.0;
  for (var i = lane; i < params.vocabulary; i += WG) {
    let value = logits[base + i];
    if (value > RULED_OUT) {
      squares += (value - mean) * (value - mean);
    }
  }
  return sqrt(lane_sum(lane, vec2<f32>(squares, 0.0)).x / number);
}

// The largest key such that the logits at or above it, and at or above `least`, weigh at least `wanted`; a logit weighs 1 (by_count) or
// exp((logit - top) / T).
fn search(base: u32, lane: u32, wanted: f32, by_count: bool, least: u32, top: f32, inverse_temperature: f32) -> u32 {
  var prefix = 0u;
  var above = 0.0;
  let buckets = 1u << BITS;
  for (var bits = BITS; bits <= 32u; bits += BITS) {
    let shift = 32u - bits;
    for (var b = 0u; b < buckets; b++) {
      histogram[b * WG + lane] = 0.0;
    }
    for (var i = lane; i < params.vocabulary; i += WG) {
      let value = logits[base + i];
      let key = float_key(value);
      // In the first round every key belongs; later only keys that share the digits chosen so far.
      let belongs = bits == BITS || (key >> (shift + BITS)) == prefix;
      if (belongs && key >= least) {
        let weight = select(exp((value - top) * inverse_temperature), 1.0, by_count);
        histogram[((key >> shift) & (buckets - 1u)) * WG + lane] += weight;
      }
    }
    workgroupBarrier();
    if (lane == 0u) {
      var bucket = buckets;
      var inside = 0.0;
      var lowest_used = 0u;
      var above_lowest = above;
      while (bucket > 0u) {
        bucket--;
        var sum = 0.0;
        for (var i = 0u; i < WG; i++) {
          sum += histogram[bucket * WG + i];
        }
        if (sum > 0.0) {
          lowest_used = bucket;
          above_lowest = above + inside;
          if (above + inside + sum >= wanted) {
            break;
          }
          inside += sum;
        }
      }
      // Rounding may leave the whole row short of `wanted`: then everything is kept.
      chosen = vec2<f32>(f32(lowest_used), above_lowest);
    }
    workgroupBarrier();
    let pick = workgroupUniformLoad(&chosen);
    prefix = (prefix << BITS) | u32(pick.x);
    above = pick.y;
  }
  return prefix;
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let row = rows[group.x];
  let base = group.x * params.stride;
  if (row.inverse_temperature == 0.0) {
    return;
  }
  if (!has_cuts(row)) {
    if (lane == 0u) {
      thresholds[group.x] = LOWEST;
    }
    return;
  }
  let top = row_max(base, lane);
  var least = 0u;
  // Top-k, then top-p. A loop whose end no compiler knows, because the search is long and would otherwise be inlined twice.
  for (var cut = 0u; cut < min(2u, params.vocabulary); cut++) {
    let by_count = cut == 0u;
    let cuts_count = row.top_k > 0u && row.top_k < params.vocabulary;
    let cuts_mass = row.top_p < 1.0;
    if (!select(cuts_mass, cuts_count, by_count)) {
      continue;
    }
    var wanted = f32(row.top_k);
    if (!by_count) {
      wanted = row.top_p * mass_above(base, lane, least, top, row.inverse_temperature);
    }
    least = search(base, lane, wanted, by_count, least, top, row.inverse_temperature);
  }
  if (row.min_p > 0.0) {
    least = max(least, float_key(top + log(row.min_p) / row.inverse_temperature));
  }
  if (row.top_n_sigma > 0.0) {
    least = max(least, float_key(top - row.top_n_sigma * deviation(base, lane)));
  }
  if (lane == 0u) {
    thresholds[group.x] = select(key_float(least), LOWEST, least == 0u);
  }
}
