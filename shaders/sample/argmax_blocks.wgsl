// best[b, block] = (value, token) of the best of BLOCK consecutive logits of row b.
//
// A greedy row takes the largest logit. A sampled row takes the largest logit / T + Gumbel noise among the logits that reach thresholds[b],
// which is a draw from their softmax (the Gumbel-max trick, lib/gumbel.wgsl). Ties go to the smaller token. The logits may be a slice of
// the vocabulary that starts at token `first`, a multiple of 4. logits [B, stride], best [B][blocks] of (value bits, token within the
// slice). One workgroup per block; grid (blocks, B). Reference: test/reference/sample.ts.
override WG: u32;
override BLOCK: u32;
override NOISE: bool;

const LOWEST = -3.4e38;
const NOBODY = 0xffffffffu;

struct Params {
  vocabulary: u32,
  stride: u32,
  first: u32,
}

@group(0) @binding(0) var<storage, read> logits: array<f32>;
@group(0) @binding(1) var<storage, read> rows: array<SamplingRow>;
@group(0) @binding(2) var<storage, read> thresholds: array<f32>;
@group(0) @binding(3) var<storage, read_write> best: array<vec2<u32>>;
@group(0) @binding(4) var<uniform> params: Params;

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
      noise = gumbel_noise(row, params.first + i);
    }
    for (var c = 0u; c < 4u; c++) {
      if (i + c < end) {
        var value = logits[base + i + c];
        if (sampled) {
          value = select(LOWEST, perturbed(row, value, noise[c]), value >= thresholds[group.y]);
        }
        if (value > top) {
          top = value;
          token = i + c;
        }
      }
    }
  }
  let chosen = best_of_lanes(lane, vec2<u32>(bitcast<u32>(top), token));
  if (lane == 0u) {
    best[group.y * groups.x + group.x] = chosen;
  }
}
