// chosen[t, :], shares[t, :] = the k experts of row t with the largest logits, best first, and their shares of a softmax over all experts
// (Shazeer 2017, https://arxiv.org/abs/1701.06538).
//
// With SIGMOID shares are the sigmoids of the logits instead (DeepSeek-V3, https://arxiv.org/abs/2412.19437). With HAS_BIAS experts are
// chosen by share plus bias [E] (ibid.; of a softmax: ERNIE 4.5, transformers, Ernie4_5_MoeTopKRouter). With HAS_GROUPS the experts are in `groups` of adjacent ones, and those of the
// kept_groups with the largest sums of their best two scores are chosen from (ibid.), or without SIGMOID of those with the largest scores
// (DeepSeek-V2, https://arxiv.org/abs/2405.04434). With SPARSE an expert's share is that of a softmax over those which are chosen no earlier and whose logits are at
// most cutoff * max(its logit, their size) less (SparseMixer, https://arxiv.org/abs/2409.12136, as PhiMoE is run). Of equal experts or groups the first is chosen. The logits are the first E of
// `stride` columns of logits [T, stride]; chosen and shares [T, k].
// Each invocation has one expert of a row, and finds its rank by counting the experts that come before it: no barriers, no sorting, and the
// same sum in every invocation. Grid (E / WG, T). Reference: test/reference/experts.ts.
override WG: u32;
override SIGMOID: bool;
override HAS_BIAS: bool;
override HAS_GROUPS: bool;
override SPARSE: bool;

// Bits of a word.
const MOST_GROUPS = 32u;

struct Params {
  rows: u32,
  experts: u32,
  k: u32,
  stride: u32,
  groups: u32,
  kept_groups: u32,
  cutoff: f32,
}

@group(0) @binding(0) var<storage, read> logits: array<f32>;
@group(0) @binding(1) var<storage, read> bias: array<f32>;
@group(0) @binding(2) var<storage, read_write> chosen: array<u32>;
@group(0) @binding(3) var<storage, read_write> shares: array<f32>;
@group(0) @binding(4) var<uniform> params: Params;

fn sigmoid(x: f32) -> f32 {
  return 1.0 / (1.0 + exp(-x));
}

// A row's largest logit, and what exponentials of the others less that sum to.
struct Softmax {
  largest: f32,
  sum: f32,
}

fn softmax(first: u32) -> Softmax {
  var all = Softmax(logits[first], 0.0);
  for (var i = 1u; i < params.experts; i++) {
    all.largest = max(all.largest, logits[first + i]);
  }
  for (var i = 0u; i < params.experts; i++) {
    all.sum += exp(logits[first + i] - all.largest);
  }
  return all;
}

// The score by which an expert is chosen: without a bias the logits' order is that of a softmax, so `all` is not read.
fn score(first: u32, expert: u32, all: Softmax) -> f32 {
  var found = logits[first + expert];
  if (SIGMOID) {
    found = sigmoid(found);
  }
  if (HAS_BIAS) {
    if (!SIGMOID) {
      found = exp(found - all.largest) / all.sum;
    }
    found += bias[expert];
  }
  return found;
}

// The groups that a row's experts are chosen from, a bit each.
fn kept_groups(first: u32, size: u32, all: Softmax) -> u32 {
  var sums: array<f32, MOST_GROUPS>;
  for (var group = 0u; group < params.groups; group++) {
    let start = group * size;
    let one = score(first, start, all);
    let other = score(first, start + 1u, all);
    var best = max(one, other);
    var second = min(one, other);
    for (var i = start + 2u; i < start + size; i++) {
      let found = score(first, i, all);
      second = max(second, min(best, found));
      best = max(best, found);
    }
    sums[group] = select(best, best + second, SIGMOID);
  }
  var kept = 0u;
  for (var group = 0u; group < params.groups; group++) {
    var rank = 0u;
    for (var i = 0u; i < params.groups; i++) {
      rank += u32(sums[i] > sums[group] || (sums[i] == sums[group] && i < group));
    }
    kept |= u32(rank < params.kept_groups) << group;
  }
  return kept;
}

@compute @workgroup_size(WG)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
  let expert = id.x;
  let row = id.y;
  if (expert >= params.experts || row >= params.rows) {
    return;
  }
  let first = row * params.stride;
  let size = params.experts / params.groups;
  var all = Softmax();
  if (HAS_BIAS && !SIGMOID) {
    all = softmax(first);
  }
  var kept = 0xffffffffu;
  if (HAS_GROUPS) {
    kept = kept_groups(first, size, all);
    if (((kept >> (expert / size)) & 1u) == 0u) {
      return;
    }
  }
  let mine = score(first, expert, all);
  var largest = logits[first + expert];
  var rank = 0u;
  for (var i = 0u; i < params.experts; i++) {
    if (HAS_GROUPS && ((kept >> (i / size)) & 1u) == 0u) {
      continue;
    }
    let other = score(first, i, all);
    largest = max(largest, logits[first + i]);
    rank += u32(other > mine || (other == mine && i < expert));
  }
  if (rank >= params.k) {
    return;
  }
  chosen[row * params.k + rank] = expert;
  if (SIGMOID) {
    shares[row * params.k + rank] = sigmoid(logits[first + expert]);
    return;
  }
  let own = logits[first + expert];
  if (SPARSE) {
    largest = own;
  }
  var sum = 0.0;
  for (var i = 0u; i < params.experts; i++) {
    let other = logits[first + i];
    let is_earlier = other > own || (other == own && i < expert);
    if (!SPARSE || (!is_earlier && own - other <= params.cutoff * max(abs(other), own))) {
      sum += exp(other - largest);
    }
  }
  shares[row * params.k + rank] = exp(own - largest) / sum;
}
