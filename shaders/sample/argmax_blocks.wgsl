// best[b, block] = (value, token) of the best of BLOCK consecutive logits of row b.
//
// A greedy row takes the largest logit. A sampled row takes the largest logit / T + Gumbel noise among the logits that reach thresholds[b], which
// is a draw from their softmax (the Gumbel-max trick); the noise of a token comes from pcg4d(token / 4, position, seed), so it depends on nothing
// else. Ties go to the smaller token. best [B][blocks] of (value bits, token). One workgroup a block; grid (blocks, B). Reference: test/reference/sample.ts.
override WG: u32;
override BLOCK: u32;
override NOISE: bool;

const LOWEST = -3.4e38;
const NOBODY = 0xffffffffu;

struct Params {
  vocabulary: u32,
  stride: u32,
}

@group(0) @binding(0) var<storage, read> logits: array<f32>;
@group(0) @binding(1) var<storage, read> rows: array<SamplingRow>;
@group(0) @binding(2) var<storage, read> thresholds: array<f32>;
@group(0) @binding(3) var<storage, read_write> best: array<vec2<u32>>;
@group(0) @binding(4) var<uniform> params: Params;

var<workgroup> lane_best: array<vec2<u32>, WG>;

// Jarzynski & Olano, Hash Functions for GPU Rendering (JCGT 2020).
fn pcg4d(seed: vec4<u32>) -> vec4<u32> {
  var v = seed * 1664525u + 1013904223u;
  v.x += v.y * v.w;
  v.y += v.z * v.x;
  v.z += v.x * v.y;
  v.w += v.y * v.z;
  v ^= v >> vec4<u32>(16u);
  v.x += v.y * v.w;
  v.y += v.z * v.x;
  v.z += v.x * v.y;
  v.w += v.y * v.z;
  return v;
}

// -log(-log(u)) of u in (0, 1) with 23 bits: with one more the largest u would round to 1.
fn gumbel(bits: vec4<u32>) -> vec4<f32> {
  let u = (vec4<f32>(bits >> vec4<u32>(9u)) + 0.5) / 8388608.0;
  return -log(-log(u));
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let row = rows[group.y];
  let base = group.y * params.stride;
  let sampled = NOISE && row.inverse_temperature > 0.0;
  let end = min(group.x * BLOCK + BLOCK, params.vocabulary);
  var top = LOWEST;
  var token = NOBODY;
  for (var i = group.x * BLOCK + lane * 4u; i < end; i += WG * 4u) {
    var noise = vec4<f32>();
    if (sampled) {
      noise = gumbel(pcg4d(vec4<u32>(i / 4u, row.position, row.seed_low, row.seed_high)));
    }
    for (var c = 0u; c < 4u; c++) {
      if (i + c < end) {
        var value = logits[base + i + c];
        if (sampled) {
          value = select(LOWEST, value * row.inverse_temperature + noise[c], value >= thresholds[group.y]);
        }
        if (value > top) {
          top = value;
          token = i + c;
        }
      }
    }
  }
  lane_best[lane] = vec2<u32>(bitcast<u32>(top), token);
  workgroupBarrier();
  if (lane > 0u) {
    return;
  }
  for (var i = 1u; i < WG; i++) {
    let value = bitcast<f32>(lane_best[i].x);
    if (value > top || (value == top && lane_best[i].y < token)) {
      top = value;
      token = lane_best[i].y;
    }
  }
  best[group.y * groups.x + group.x] = vec2<u32>(bitcast<u32>(top), token);
}
