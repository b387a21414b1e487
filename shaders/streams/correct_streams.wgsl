// out[k, t, c] = predicted[k, t, c] + (1 + coefs[t, k]) (passed[t, c] - predicted[0, t, c]) (+ other[t, c] for k > 0): corrects AltUp's
// streams after a layer, which only the first went through. With FIRST only stream 0 is computed, and multiplied by other[c].
//
// predicted, out [S, stream] with streams of rows of C, C a multiple of 4; passed [T, C], coefs [T, S]. One invocation per four channels of
// all streams. Reference: test/reference/streams.ts.
override WG: u32;
override FIRST: bool;

struct Params {
  count4: u32,
  columns4: u32,
  stream4: u32,
}

@group(0) @binding(0) var<storage, read> predicted: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read> passed: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read> coefs: array<f32>;
@group(0) @binding(3) var<storage, read> other: array<vec4<f32>>;
@group(0) @binding(4) var<storage, read_write> out: array<vec4<f32>>;
@group(0) @binding(5) var<uniform> params: Params;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let i = workgroup_index(group, groups) * WG + lane;
  if (i >= params.count4) {
    return;
  }
  let row = i / params.columns4;
  let before = predicted[i];
  let innovation = passed[i] - before;
  let first = fma(vec4<f32>(1.0 + coefs[row * STREAMS]), innovation, before);
  if (FIRST) {
    out[i] = first * other[i - row * params.columns4];
    return;
  }
  out[i] = first;
  for (var k = 1u; k < STREAMS; k++) {
    let at = k * params.stream4 + i;
    out[at] = fma(vec4<f32>(1.0 + coefs[row * STREAMS + k]), innovation, predicted[at]) + other[i];
  }
}
