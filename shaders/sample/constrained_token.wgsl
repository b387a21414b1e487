// results[b] = (token, log-probability) of the best allowed token of row b, for decoders whose next token is constrained (Whisper).
//
// lib/token_rules.wgsl says which tokens are allowed; timestamps win over text when their summed probability exceeds that of the best text
// token. The tokens so far are summarised in state[slot] = (last is a timestamp, the one before is, last timestamp, -), so that a step
// needs no readback of the previous one. The probability is over the allowed tokens. A PROBE row leaves the state alone and returns the
// log-probability of row.probe over all tokens; CANDIDATES rows are left to sample/token_candidates.wgsl. With a temperature, Gumbel noise
// selected by (seed, position) is added. logits [B, stride]. One workgroup per row. Reference: test/reference/constrained-token.ts.
override WG: u32;

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
@group(0) @binding(3) var<storage, read_write> state: array<vec4<u32>>;
@group(0) @binding(4) var<storage, read_write> last_tokens: array<u32>;
@group(0) @binding(5) var<storage, read_write> results: array<vec2<u32>>;
@group(0) @binding(6) var<uniform> params: Params;

// By kind (text, timestamps): the best value, with noise, its token, and the largest logit.
struct Best {
  value: vec2<f32>,
  token: vec2<u32>,
  logit: vec2<f32>,
}

var<workgroup> lane_best: array<Best, WG>;
var<workgroup> lane_sum: array<vec2<f32>, WG>;

fn merge(a: Best, b: Best) -> Best {
  let take = (b.value > a.value) | ((b.value == a.value) & (b.token < a.token));
  return Best(select(a.value, b.value, take), select(a.token, b.token, take), max(a.logit, b.logit));
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let row = rows[group.x];
  if ((row.mode & CANDIDATES) != 0u) {
    return;
  }
  let before = state[row.slot];
  let base = group.x * params.stride;
  let probing = (row.mode & PROBE) != 0u;
  let noise_seed = row.seed + row.position * 0x9e3779b1u;
  var best = Best(vec2<f32>(LOWEST), vec2<u32>(NOBODY), vec2<f32>(LOWEST));
  for (var token = lane; token < params.vocabulary; token += WG) {
    let logit = logits[base + token];
    let kind = select(0u, 1u, token >= params.timestamp_begin);
    let may = allowed(token, row, before);
    if (may || probing) {
      best.logit[kind] = max(best.logit[kind], logit);
    }
    if (may) {
      var value = logit;
      if (row.inverse_temperature > 0.0) {
        value = logit * row.inverse_temperature - log(minus_log(mulberry(noise_seed, token) * 0.9999999 + 1e-10));
      }
      if (value > best.value[kind]) {
        best.value[kind] = value;
        best.token[kind] = token;
      }
    }
  }
  lane_best[lane] = best;
  workgroupBarrier();
  best = lane_best[0];
  for (var i = 1u; i < WG; i++) {
    best = merge(best, lane_best[i]);
  }
  let highest = max(best.logit.x, best.logit.y);
  var sum = vec2<f32>();
  for (var token = lane; token < params.vocabulary; token += WG) {
    if (probing || allowed(token, row, before)) {
      sum[select(0u, 1u, token >= params.timestamp_begin)] += exp(logits[base + token] - highest);
    }
  }
  lane_sum[lane] = sum;
  workgroupBarrier();
  if (lane > 0u) {
    return;
  }
  for (var i = 1u; i < WG; i++) {
    sum += lane_sum[i];
  }
  var token = select(best.token.x, best.token.y, best.value.y > best.value.x);
  if (probing) {
    let logprob = logits[base + row.probe] - highest - log(sum.x + sum.y);
    results[group.x] = vec2<u32>(token, bitcast<u32>(logprob));
    return;
  }
  var norm = sum.x + sum.y;
  if ((row.mode & TIMESTAMPS) != 0u && sum.y > 0.0 && log(sum.y) + highest > best.logit.x) {
    token = best.token.y;
    norm = sum.y;
  }
  // Nothing allowed: end the transcript.
  let stuck = token == NOBODY;
  token = select(token, params.eos, stuck);
  let logprob = select(logits[base + token] - highest - log(norm), 0.0, stuck);
  let is_timestamp = token >= params.timestamp_begin;
  let first = (row.mode & FIRST) != 0u;
  let last_timestamp = select(select(before.z, 0u, first), token, is_timestamp);
  state[row.slot] = vec4<u32>(u32(is_timestamp), select(before.x, 1u, first), last_timestamp, 0u);
  last_tokens[row.slot] = token;
  results[group.x] = vec2<u32>(token, bitcast<u32>(logprob));
}
