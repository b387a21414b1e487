// out[at + i out_stride ...] = (log sum exp, logit of the sampled token, then `top` pairs (token, logit), largest first, ties to the
// smaller token) of row b = indices[i], from unmodified logits [B, stride]. One workgroup per listed row. The pairs come from `top` rounds
// of "the largest below the previous one", because `top` is small and rarely asked for. Reference: test/reference/logits.ts.
override WG: u32;

const LOWEST = -3.4e38;
const NOBODY = 0xffffffffu;

struct Params {
  vocabulary: u32,
  stride: u32,
  top: u32,
  out_stride: u32,
  at: u32,
}

@group(0) @binding(0) var<storage, read> logits: array<f32>;
@group(0) @binding(1) var<storage, read> indices: array<u32>;
@group(0) @binding(2) var<storage, read> sampled: array<u32>;
@group(0) @binding(3) var<storage, read_write> out: array<u32>;
@group(0) @binding(4) var<uniform> params: Params;

var<workgroup> lane_value: array<f32, WG>;
var<workgroup> lane_token: array<u32, WG>;

// The largest (value, token) over the lanes, ties to the smaller token; left in element 0.
fn reduce_best(lane: u32, value: f32, token: u32) {
  lane_value[lane] = value;
  lane_token[lane] = token;
  workgroupBarrier();
  for (var step = WG / 2u; step > 0u; step /= 2u) {
    if (lane < step) {
      let other = lane_value[lane + step];
      let other_token = lane_token[lane + step];
      if (other > lane_value[lane] || (other == lane_value[lane] && other_token < lane_token[lane])) {
        lane_value[lane] = other;
        lane_token[lane] = other_token;
      }
    }
    workgroupBarrier();
  }
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let row = indices[group.x];
  let base = row * params.stride;
  var bound = 3.4e38;
  var bound_token = 0u;
  var largest = 0.0;
  let at = params.at + group.x * params.out_stride;
  let rounds = max(params.top, 1u);
  for (var round = 0u; round < rounds; round++) {
    var value = LOWEST;
    var token = NOBODY;
    for (var i = lane; i < params.vocabulary; i += WG) {
      let v = logits[base + i];
      let below = round == 0u || v < bound || (v == bound && i > bound_token);
      if (below && (v > value || (v == value && i < token))) {
        value = v;
        token = i;
      }
    }
    reduce_best(lane, value, token);
    bound = lane_value[0];
    bound_token = lane_token[0];
    workgroupBarrier();
    if (round == 0u) {
      largest = bound;
    }
    if (lane == 0u && round < params.top) {
      out[at + 2u + 2u * round] = bound_token;
      out[at + 3u + 2u * round] = bitcast<u32>(bound);
    }
  }
  var sum = 0.0;
  for (var i = lane; i < params.vocabulary; i += WG) {
    sum += exp(logits[base + i] - largest);
  }
  lane_value[lane] = sum;
  workgroupBarrier();
  if (lane == 0u) {
    var total = 0.0;
    for (var i = 0u; i < WG; i++) {
      total += lane_value[i];
    }
    out[at] = bitcast<u32>(largest + log(total));
    out[at + 1u] = bitcast<u32>(logits[base + sampled[row]]);
  }
}
