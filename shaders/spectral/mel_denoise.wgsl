// log[t, m] += log10(max(1 - N[m] / P[t, m], keep)), in place: removes stationary noise from band m. P[t, m] is the mean power, 10^log, of
// frames t - RADIUS to t + RADIUS. The noise N[m] is `over` times the power below which the `quiet` smallest of the P[t, m] lie, but at
// most `spread` times the power below which the `least` smallest lie: stationary noise is never much weaker, and speech is between words.
// Frames from `heard` on (the silence after a window) are not counted and stay as they are. log [T][stride]. One workgroup per band.
// Reference: test/reference/spectral.ts.
override WG: u32;
override FRAMES: u32;

const LOG2_10 = 3.3219280948873623;
const RADIUS = 2u;
// Range of exponents of 2 in which a power is searched for by bisection, and the number of steps, which find it to 0.3 %.
const LOWEST = -34.0;
const HIGHEST = 20.0;
const HALVINGS = 14u;

struct Params {
  heard: u32,
  stride: u32,
  quiet: u32,
  least: u32,
  over: f32,
  spread: f32,
  keep: f32,
}

@group(0) @binding(0) var<storage, read_write> log_mel: array<f32>;
@group(0) @binding(1) var<uniform> params: Params;

var<workgroup> power: array<f32, FRAMES>;
var<workgroup> below: array<u32, WG>;

// The largest power below which at most `count` of the first params.heard lie.
fn power_above(count: u32, lane: u32) -> f32 {
  var low = LOWEST;
  var high = HIGHEST;
  for (var step = 0u; step < HALVINGS; step++) {
    let middle = (low + high) / 2.0;
    let limit = exp2(middle);
    // Waits for `power` to be written, and for the reads of `below` in the previous step.
    workgroupBarrier();
    var found = 0u;
    for (var t = lane; t < params.heard; t += WG) {
      found += select(0u, 1u, power[t] < limit);
    }
    below[lane] = found;
    workgroupBarrier();
    var total = 0u;
    for (var i = 0u; i < WG; i++) {
      total += below[i];
    }
    if (total > count) {
      high = middle;
    } else {
      low = middle;
    }
  }
  return exp2(low);
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let heard = params.heard;
  for (var t = lane; t < heard; t += WG) {
    let first = t - min(t, RADIUS);
    let end = min(t + RADIUS + 1u, heard);
    var sum = 0.0;
    for (var i = first; i < end; i++) {
      sum += exp2(log_mel[i * params.stride + group.x] * LOG2_10);
    }
    power[t] = sum / f32(end - first);
  }
  let quiet = power_above(params.quiet, lane);
  let least = power_above(params.least, lane);
  let noise = min(params.over * quiet, params.spread * least);
  for (var t = lane; t < heard; t += WG) {
    log_mel[t * params.stride + group.x] += log2(max(1.0 - noise / power[t], params.keep)) / LOG2_10;
  }
}
