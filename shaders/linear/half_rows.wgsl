// halves[i, k] = x[first_row + i, k] * 2^e in f16 and scales[i] = 2^-e, with e such that the largest magnitude of the row lies in [2^14,
// 2^15): a power of two changes no bit of a product, and nothing overflows. x [M, 4 k4] f32; halves [rows][row_quads] of four values, zeros
// beyond the row. One workgroup per row. Reference: test/reference/half-rows.ts.
override WG: u32;

struct Params {
  rows: u32,
  first_row: u32,
  k4: u32,
  row_quads: u32,
}

@group(0) @binding(0) var<storage, read> x: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read_write> halves: array<vec2<u32>>;
@group(0) @binding(2) var<storage, read_write> scales: array<f32>;
@group(0) @binding(3) var<uniform> params: Params;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let row = workgroup_index(group, groups);
  if (row >= params.rows) {
    return;
  }
  let base = (params.first_row + row) * params.k4;
  var magnitude = 0.0;
  for (var k = lane; k < params.k4; k += WG) {
    let a = abs(x[base + k]);
    magnitude = max(magnitude, max(max(a.x, a.y), max(a.z, a.w)));
  }
  // Biased exponent of the magnitude, clamped from below because the inverse factor of the smallest rows would not be a normal number.
  let exponent = clamp(bitcast<u32>(reduce_max(lane, magnitude)) >> 23u, 15u, 254u);
  let factor = bitcast<f32>((268u - exponent) << 23u);
  for (var k = lane; k < params.row_quads; k += WG) {
    let v = select(vec4<f32>(), x[base + min(k, params.k4 - 1u)] * factor, k < params.k4);
    halves[row * params.row_quads + k] = vec2<u32>(pack2x16float(v.xy), pack2x16float(v.zw));
  }
  if (lane == 0u) {
    scales[row] = bitcast<f32>((exponent - 14u) << 23u);
  }
}
