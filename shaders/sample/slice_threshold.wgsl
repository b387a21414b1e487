// thresholds[b] = the smallest logit of row b that its cuts keep, as in sample/sample_threshold.wgsl, found in slices in descending order
// (sample/sort_slices.wgsl).
//
// The thresholds of top-k, then of top-p, are found by bisection over keys: because it is sorted, a slice knows how many of its logits
// reach a key, and their weight. The search ends when one logit is left in the range. sorted [rows][slices][size], stats [rows][slices],
// rows counted from `first_row`. One workgroup per row, one invocation per slice. Reference: test/reference/sample.ts.
override WG: u32;

const LOWEST = -3.4e38;

struct Params {
  vocabulary: u32,
  slices: u32,
  first_row: u32,
  // Logits per slice.
  size: u32,
  // Power of two, at least `slices`. A param and not WG, because compilers that know the trip counts of a tree's loops unroll them all,
  // which takes minutes.
  width: u32,
}

@group(0) @binding(0) var<storage, read> sorted: array<vec2<u32>>;
@group(0) @binding(1) var<storage, read> stats: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read> rows: array<SamplingRow>;
@group(0) @binding(3) var<storage, read_write> thresholds: array<f32>;
@group(0) @binding(4) var<uniform> params: Params;

var<workgroup> pairs: array<vec2<f32>, WG>;
var<workgroup> only_key: u32;
var<workgroup> top_key: atomic<u32>;

// Sum over all invocations, always in the same order; the result is uniform.
fn total(lane: u32, value: vec2<f32>) -> vec2<f32> {
  pairs[lane] = value;
  workgroupBarrier();
  for (var step = params.width / 2u; step > 0u; step /= 2u) {
    if (lane < step) {
      pairs[lane] += pairs[lane + step];
    }
    workgroupBarrier();
  }
  return workgroupUniformLoad(&pairs[0]);
}

// Number of a slice's keys that are at least `key`, by bisection between the bounds `least` and `most`.
fn rank(slice: u32, key: u32, least: u32, most: u32) -> u32 {
  var low = least;
  var high = most;
  while (low < high) {
    let middle = (low + high) / 2u;
    if (sorted[slice * params.size + middle].x >= key) {
      low = middle + 1u;
    } else {
      high = middle;
    }
  }
  return low;
}

// Weight of a slice's largest `count` logits, relative to its largest one.
fn weight(slice: u32, count: u32) -> f32 {
  if (count == 0u) {
    return 0.0;
  }
  return bitcast<f32>(sorted[slice * params.size + count - 1u].y);
}

// The largest key from `least` to the key of `top` such that at least `wanted` logits reach it (by_count), or that those which reach it
// have at least the share `wanted` of the weight of all that reach `least`.
fn search(first: u32, lane: u32, wanted: f32, by_count: bool, least: u32, top: f32, inverse_temperature: f32) -> u32 {
  let slice = first + lane;
  // Weight of the slice's largest logit, and how many of its logits reach the lower and the upper end of the range.
  var scale = 0.0;
  var low_rank = 0u;
  var high_rank = 0u;
  if (lane < params.slices) {
    scale = exp((stats[slice].x - top) * inverse_temperature);
    low_rank = rank(slice, least, 0u, params.size);
  }
  let all = total(lane, vec2<f32>(f32(low_rank), scale * weight(slice, low_rank)));
  let enough = select(wanted * all.y, wanted, by_count);
  var inside = all.x;
  var above = 0.0;
  var low = least;
  var high = float_key(top) + 1u;
  while (high - low > 1u && inside - above > 1.0) {
    let middle = low + (high - low) / 2u;
    let count = rank(slice, middle, high_rank, low_rank);
    let reached = total(lane, vec2<f32>(f32(count), scale * weight(slice, count)));
    if (select(reached.y, reached.x, by_count) >= enough) {
      low = middle;
      inside = reached.x;
      low_rank = count;
    } else {
      high = middle;
      above = reached.x;
      high_rank = count;
    }
  }
  if (high - low > 1u && inside - above == 1.0) {
    if (low_rank > high_rank) {
      only_key = sorted[slice * params.size + high_rank].x;
    }
    low = workgroupUniformLoad(&only_key);
  }
  return low;
}

// Standard deviation of the logits that are not ruled out.
fn deviation(first: u32, lane: u32) -> f32 {
  var mine = vec4<f32>();
  if (lane < params.slices) {
    mine = stats[first + lane];
  }
  let all = total(lane, vec2<f32>(mine.y, mine.y * mine.z));
  let number = max(1.0, all.x);
  let mean = all.y / number;
  let squares = mine.w + mine.y * (mine.z - mean) * (mine.z - mean);
  return sqrt(total(lane, vec2<f32>(squares, 0.0)).x / number);
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let b = params.first_row + group.x;
  let row = rows[b];
  if (row.inverse_temperature == 0.0) {
    return;
  }
  if (!has_cuts(row)) {
    if (lane == 0u) {
      thresholds[b] = LOWEST;
    }
    return;
  }
  let first = group.x * params.slices;
  // Explicitly, because Dawn does not zero workgroup memory with --dawn-toggles fast, nor in the library.
  if (lane == 0u) {
    atomicStore(&top_key, 0u);
  }
  workgroupBarrier();
  if (lane < params.slices) {
    atomicMax(&top_key, float_key(stats[first + lane].x));
  }
  workgroupBarrier();
  if (lane == 0u) {
    only_key = atomicLoad(&top_key);
  }
  let top = key_float(workgroupUniformLoad(&only_key));
  var least = 0u;
  for (var cut = 0u; cut < 2u; cut++) {
    let by_count = cut == 0u;
    let cuts = (by_count && row.top_k > 0u && row.top_k < params.vocabulary) || (!by_count && row.top_p < 1.0);
    if (cuts) {
      least = search(first, lane, select(row.top_p, f32(row.top_k), by_count), by_count, least, top, row.inverse_temperature);
    }
  }
  if (row.min_p > 0.0) {
    least = max(least, float_key(top + log(row.min_p) / row.inverse_temperature));
  }
  if (row.top_n_sigma > 0.0) {
    least = max(least, float_key(top - row.top_n_sigma * deviation(first, lane)));
  }
  if (lane == 0u) {
    thresholds[b] = select(key_float(least), LOWEST, least == 0u);
  }
}
