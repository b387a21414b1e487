// Argmax over the WG invocations of a workgroup (a power of two): the largest value and its token, ties to the smaller token. Only
// invocation 0 gets the result.
var<workgroup> lane_best: array<vec2<u32>, WG>;

fn better(one: vec2<u32>, other: vec2<u32>) -> vec2<u32> {
  let a = bitcast<f32>(one.x);
  let b = bitcast<f32>(other.x);
  return select(one, other, b > a || (b == a && other.y < one.y));
}

// `mine` = (bits of the value, token).
fn best_of_lanes(lane: u32, mine: vec2<u32>) -> vec2<u32> {
  lane_best[lane] = mine;
  workgroupBarrier();
  // For the last 8 lanes a loop in one lane is faster than further barriers.
  for (var step = WG / 2u; step >= 8u; step /= 2u) {
    if (lane < step) {
      lane_best[lane] = better(lane_best[lane], lane_best[lane + step]);
    }
    workgroupBarrier();
  }
  var best = mine;
  if (lane == 0u) {
    best = lane_best[0];
    for (var i = 1u; i < min(WG, 8u); i++) {
      best = better(best, lane_best[i]);
    }
  }
  return best;
}
