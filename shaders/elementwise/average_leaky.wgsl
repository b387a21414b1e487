// out[i] = leaky(mean_j parts[j, i]), leaky(y) = y for y >= 0, else slope * y: joins the parallel residual blocks of iSTFTNet.
//
// parts [PARTS][part_stride4] of vec4, summed in order; lib/quads_buffer.wgsl or lib/quads_texture.wgsl stores out. One invocation per
// vec4.
override WG: u32;
override PARTS: u32;

struct Params {
  count4: u32,
  part_stride4: u32,
  slope: f32,
}

@group(0) @binding(0) var<storage, read> parts: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read_write> out: array<vec4<f32>>;
@group(0) @binding(2) var<uniform> params: Params;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let i = workgroup_index(group, groups) * WG + lane;
  if (i >= params.count4) {
    return;
  }
  var sum = parts[i];
  for (var j = 1u; j < PARTS; j++) {
    sum += parts[j * params.part_stride4 + i];
  }
  let y = sum / f32(PARTS);
  put_quad(i, select(params.slope * y, y, y >= vec4<f32>()));
}
