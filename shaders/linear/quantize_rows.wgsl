// Quantises activations to int8 in blocks of 32 along K: q = round(x / scale), scale = max|x| / 127.
// x [M, K] f32; q [M][K/32] of two vec4<u32>; scales [M][K/32] of (scale, sum of q). One invocation a block; K beyond `columns` counts as zero.
// Reference: test/reference/quantize.ts.
override WG: u32;

struct Params {
  rows: u32,
  columns: u32,
  blocks: u32,
}

@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> q: array<u32>;
@group(0) @binding(2) var<storage, read_write> scales: array<vec2<f32>>;
@group(0) @binding(3) var<uniform> params: Params;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let i = workgroup_index(group, groups) * WG + lane;
  if (i >= params.rows * params.blocks) {
    return;
  }
  let first = (i % params.blocks) * 32u;
  let base = (i / params.blocks) * params.columns + first;
  let count = min(params.columns - first, 32u);
  var largest = 0.0;
  for (var k = 0u; k < count; k++) {
    largest = max(largest, abs(x[base + k]));
  }
  let scale = largest / 127.0;
  let inverse = select(1.0 / scale, 0.0, largest == 0.0);
  var sum = 0;
  for (var word = 0u; word < 8u; word++) {
    var values = vec4<i32>(0);
    for (var j = 0u; j < 4u; j++) {
      let k = word * 4u + j;
      if (k < count) {
        values[j] = i32(round(x[base + k] * inverse));
      }
    }
    sum += values.x + values.y + values.z + values.w;
    q[i * 8u + word] = pack4xI8(values);
  }
  scales[i] = vec2<f32>(scale, f32(sum));
}
