// predicted[k, t, c] = x[k, t, c] + sum_n coefs[t, k S + n] x[n, t, c]: predicts AltUp's streams before a layer, each from all
// (https://arxiv.org/abs/2301.13310). x, predicted [S, stream] with streams of rows of C, C a multiple of 4; coefs [T, S S]. One invocation
// per four channels of all streams. Reference: test/reference/streams.ts.
override WG: u32;

struct Params {
  count4: u32,
  columns4: u32,
  stream4: u32,
}

@group(0) @binding(0) var<storage, read> x: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read> coefs: array<f32>;
@group(0) @binding(2) var<storage, read_write> predicted: array<vec4<f32>>;
@group(0) @binding(3) var<uniform> params: Params;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let i = workgroup_index(group, groups) * WG + lane;
  if (i >= params.count4) {
    return;
  }
  let first = i / params.columns4 * STREAMS * STREAMS;
  var values: array<vec4<f32>, STREAMS>;
  for (var k = 0u; k < STREAMS; k++) {
    values[k] = x[k * params.stream4 + i];
  }
  for (var k = 0u; k < STREAMS; k++) {
    var mixed = vec4<f32>();
    for (var n = 0u; n < STREAMS; n++) {
      mixed = fma(vec4<f32>(coefs[first + k * STREAMS + n]), values[n], mixed);
    }
    predicted[k * params.stream4 + i] = values[k] + mixed;
  }
}
