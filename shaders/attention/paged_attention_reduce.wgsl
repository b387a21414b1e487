// out[t, h] = the parts that paged_attention*.wgsl leaves with params.partial, combined in order of position and divided by their sum; with
// HAS_SINK the head's sink is added last.
//
// partials [T][H][parts][D4 + 1] of vec4, of which the last holds (maximum in base 2, sum). Row t has parts 0 to positions[t] / SPLIT,
// without those before its window. One workgroup per row and head, one invocation per four channels. Several parts are loaded at once, so
// that their loads overlap. The arithmetic is that of paged_attention.wgsl and paged_attention_wide.wgsl, to the bit. Reference:
// test/reference/paged-attention.ts.
override HAS_SINK: bool;

// Parts whose loads overlap. Lavapipe, recognised by its 8 lanes, gains nothing from more than 1.
const AT_ONCE = select(8u, 1u, LANES == 8u);

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
    for (var from_part = first; from_part < count; from_part += AT_ONCE) {
      var heads = array<vec4<f32>, AT_ONCE>();
      var sums = array<vec4<f32>, AT_ONCE>();
      for (var j = 0u; j < AT_ONCE; j++) {
        let base = (at * params.parts + min(from_part + j, count - 1u)) * (D4 + 1u);
        heads[j] = partials[base + D4];
        sums[j] = partials[base + d4];
      }
      for (var j = 0u; j < AT_ONCE; j++) {
        if (from_part + j < count) {
          let new_max = max(total_max, heads[j].x);
          let old_factor = rescale(total_max, new_max);
          let new_factor = rescale(heads[j].x, new_max);
          total_sum = fma(heads[j].y, new_factor, total_sum * old_factor);
          total = fma(sums[j], vec4<f32>(new_factor), total * old_factor);
          total_max = new_max;
        }
      }
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
