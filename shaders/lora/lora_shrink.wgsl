// out[t, s, j] = sum_k y[t, k] * A[l, s, j, k] with y = x / rms(x) * norm (HAS_NORM) or y = x, where l is the LoRA adapter of row t: the
// first half of a product of low rank. x [T, K]; out [T, segments * ranks] in quads of j, of which row t has table[l, s].z of each segment;
// the others are left as they are, as are rows without an adapter. A lies from vec4 table[l, s].x on as [rank][K / 4]. One workgroup per row
// and quad of j; it adds up K in the order of its lanes, whatever the number of rows. Reference: test/reference/lora.ts.
override WG: u32;
override HAS_NORM: bool;

struct Params {
  rows: u32,
  segments: u32,
  // Quads of j that a segment has in out.
  ranks: u32,
  k4: u32,
  out_stride4: u32,
  eps: f32,
}

@group(0) @binding(0) var<storage, read> x: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read> norm: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read> loras: array<u32>;
@group(0) @binding(3) var<storage, read> table: array<vec4<u32>>;
@group(0) @binding(4) var<storage, read> a: array<vec4<f32>>;
@group(0) @binding(5) var<storage, read_write> out: array<vec4<f32>>;
@group(0) @binding(6) var<uniform> params: Params;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let index = workgroup_index(group, groups);
  let quads = params.segments * params.ranks;
  let row = index / quads;
  if (row >= params.rows) {
    return;
  }
  let column = index % quads;
  let quad = column % params.ranks;
  let entry = table[loras[row] * params.segments + column / params.ranks];
  if (quad >= entry.z) {
    return;
  }
  norm_row(row, lane);
  let k4 = params.k4;
  let first = entry.x + 4u * quad * k4;
  var sum0 = 0.0;
  var sum1 = 0.0;
  var sum2 = 0.0;
  var sum3 = 0.0;
  for (var k = lane; k < k4; k += WG) {
    let v = x_quad(row, k);
    sum0 += dot(v, a[first + k]);
    sum1 += dot(v, a[first + k4 + k]);
    sum2 += dot(v, a[first + 2u * k4 + k]);
    sum3 += dot(v, a[first + 3u * k4 + k]);
  }
  let sums = vec4<f32>(reduce_sum(lane, sum0), reduce_sum(lane, sum1), reduce_sum(lane, sum2), reduce_sum(lane, sum3));
  if (lane == 0u) {
    out[row * params.out_stride4 + column] = sums;
  }
}
