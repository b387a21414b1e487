// out[t, h] = the parts of paged_attention.wgsl (params.partial) folded in order of position and divided by their sum, with a head's sink behind them (HAS_SINK).
//
// partials [T][H][parts][D4 + 1] of vec4, the last holds (maximum in base 2, sum); row t has positions[t] / SPLIT + 1 parts, those before
// its window left out. One workgroup a row and
// head, one invocation four channels. The arithmetic is that of paged_attention.wgsl, to the bit. Reference: test/reference/paged-attention.ts.
override HAS_SINK: bool;

const LOWEST = -1e30;
const LOG2E = 1.4426950408889634;

struct Params {
  heads: u32,
  parts: u32,
  window: u32,
}

@group(0) @binding(0) var<storage, read> partials: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read> positions: array<u32>;
@group(0) @binding(2) var<storage, read> sinks: array<f32>;
@group(0) @binding(3) var<storage, read_write> out: array<vec4<f32>>;
@group(0) @binding(4) var<uniform> params: Params;

// 2^(a - b), exactly 1 when they are equal.
fn rescale(a: f32, b: f32) -> f32 {
  return select(exp2(a - b), 1.0, a == b);
}

@compute @workgroup_size(LANES)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let at = group.y * params.heads + group.x;
  let position = positions[group.y];
  let count = min(position / SPLIT + 1u, params.parts);
  let first = (position + 1u - min(position + 1u, params.window)) / SPLIT;
  for (var d4 = lane; d4 < D4; d4 += LANES) {
    var total_max = LOWEST;
    var total_sum = 0.0;
    var total = vec4<f32>();
    for (var part = first; part < count; part++) {
      let base = (at * params.parts + part) * (D4 + 1u);
      let head = partials[base + D4];
      let new_max = max(total_max, head.x);
      let old_factor = rescale(total_max, new_max);
      let new_factor = rescale(head.x, new_max);
      total_sum = fma(head.y, new_factor, total_sum * old_factor);
      total = fma(partials[base + d4], vec4<f32>(new_factor), total * old_factor);
      total_max = new_max;
    }
    if (HAS_SINK) {
      let sink = LOG2E * sinks[group.x];
      let new_max = max(total_max, sink);
      let factor = rescale(total_max, new_max);
      total_sum = fma(total_sum, factor, exp2(sink - new_max));
      total *= factor;
    }
    out[at * D4 + d4] = total / total_sum;
  }
}
