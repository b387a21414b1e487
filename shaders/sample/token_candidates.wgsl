// candidates[b][i] = (token, log-probability) of the i-th best allowed token of row b, for beam search over constrained tokens (Whisper).
// Rules and probabilities are those of sample/constrained_token.wgsl, but the tokens so far are summarised in row.history, because a
// hypothesis moves from slot to slot. Where timestamps win over text, only they are candidates. Places without a token left hold NOBODY.
// Only CANDIDATES rows are written. logits [B, stride]. One workgroup per row; round i takes the best token after that of round i - 1, ties
// to the lower token. Reference: test/reference/constrained-token.ts.
override WG: u32;
override COUNT: u32;

const LOWEST = -3.4e38;
const NOBODY = 0xffffffffu;

struct Params {
  vocabulary: u32,
  stride: u32,
  mask_words: u32,
  timestamp_begin: u32,
  eos: u32,
  max_initial: u32,
}

@group(0) @binding(0) var<storage, read> logits: array<f32>;
@group(0) @binding(1) var<storage, read> rows: array<Row>;
@group(0) @binding(2) var<storage, read> masks: array<u32>;
@group(0) @binding(3) var<storage, read_write> candidates: array<vec2<u32>>;
@group(0) @binding(4) var<uniform> params: Params;

var<workgroup> lane_best: array<vec2<f32>, WG>;
var<workgroup> lane_sum: array<vec2<f32>, WG>;
var<workgroup> lane_value: array<f32, WG>;
var<workgroup> lane_token: array<u32, WG>;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let row = rows[group.x];
  if ((row.mode & CANDIDATES) == 0u) {
    return;
  }
  let before = vec4<u32>(row.history & 1u, (row.history >> 1u) & 1u, row.history >> 2u, 0u);
  let base = group.x * params.stride;

  // Best logit and sum of exponentials of text and of timestamps.
  var best = vec2<f32>(LOWEST);
  for (var token = lane; token < params.vocabulary; token += WG) {
    if (allowed(token, row, before)) {
      let kind = select(0u, 1u, token >= params.timestamp_begin);
      best[kind] = max(best[kind], logits[base + token]);
    }
  }
  lane_best[lane] = best;
  workgroupBarrier();
  for (var i = 0u; i < WG; i++) {
    best = max(best, lane_best[i]);
  }
  let highest = max(best.x, best.y);
  var sum = vec2<f32>();
  for (var token = lane; token < params.vocabulary; token += WG) {
    if (allowed(token, row, before)) {
      sum[select(0u, 1u, token >= params.timestamp_begin)] += exp(logits[base + token] - highest);
    }
  }
  lane_sum[lane] = sum;
  workgroupBarrier();
  sum = vec2<f32>();
  for (var i = 0u; i < WG; i++) {
    sum += lane_sum[i];
  }
  let only_timestamps = (row.mode & TIMESTAMPS) != 0u && sum.y > 0.0 && log(sum.y) + highest > best.x;
  let begin = select(0u, params.timestamp_begin, only_timestamps);
  let norm = highest + log(select(sum.x + sum.y, sum.y, only_timestamps));

  var last_value = -LOWEST;
  var last_token = NOBODY;
  for (var round = 0u; round < COUNT; round++) {
    var value = LOWEST;
    var chosen = NOBODY;
    for (var token = begin + lane; token < params.vocabulary; token += WG) {
      let logit = logits[base + token];
      let after_last = logit < last_value || (logit == last_value && token > last_token);
      if (logit > value && after_last && allowed(token, row, before)) {
        value = logit;
        chosen = token;
      }
    }
    lane_value[lane] = value;
    lane_token[lane] = chosen;
    workgroupBarrier();
    last_value = lane_value[0];
    last_token = lane_token[0];
    for (var i = 1u; i < WG; i++) {
      if (lane_value[i] > last_value || (lane_value[i] == last_value && lane_token[i] < last_token)) {
        last_value = lane_value[i];
        last_token = lane_token[i];
      }
    }
    if (lane == 0u) {
      candidates[group.x * COUNT + round] = vec2<u32>(last_token, bitcast<u32>(last_value - norm));
    }
    workgroupBarrier();
  }
}
