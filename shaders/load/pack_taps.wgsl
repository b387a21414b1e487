// packed [column / beside][t C4 + c / 4][column % beside][c % 4] = a convolution's floats, as a file stores them, with column = out_column
// + row and C4 = ceil(C / 4), as f32, or with HALF as f16 rounded to nearest even: where all columns lie next to each other, the layout of
// packLinear for rows of taps with channels padded to 4.
//
// raw (lib/stored_floats.wgsl) has `channels` of the channels, from 4 first_quad on. Tap t of row r is position k = k_first + r / group + t
// k_step of the kernel (zeros where there is none), which lies at (r % group) row_stride + c channel_stride + k in raw. flags[tensor]
// becomes 1 when a value is not finite or too large for f16. One invocation per row, tap and QUADS quads of channels.
override WG: u32;
override SOURCE: u32;
override HALF: bool;
override QUADS: u32;
override PAIRS: bool;

struct Params {
  rows: u32,
  group: u32,
  row_stride: u32,
  channel_stride: u32,
  channels: u32,
  first_quad: u32,
  tap_quads: u32,
  row_quads: u32,
  kernel: u32,
  k_first: i32,
  k_step: i32,
  out_column: u32,
  beside: u32,
  tensor: u32,
}

@group(0) @binding(0) var<storage, read> raw: array<u32>;
@group(0) @binding(1) var<storage, read_write> packed: array<u32>;
@group(0) @binding(2) var<storage, read_write> flags: array<u32>;
@group(0) @binding(3) var<uniform> params: Params;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let row = group.x * WG + lane;
  if (row >= params.rows) {
    return;
  }
  let tap = group.z;
  let column = params.out_column + row;
  let k = params.k_first + i32(row / params.group) + i32(tap) * params.k_step;
  let inside = k >= 0 && k < i32(params.kernel);
  let first = row % params.group * params.row_stride + u32(max(k, 0));
  var bad = false;
  // The end is no constant, so that the loop is not unrolled.
  let end = min((group.y + 1u) * QUADS, (params.channels + 3u) / 4u);
  for (var quad = group.y * QUADS; quad < end; quad++) {
    var values = vec4<u32>(0u);
    for (var j = 0u; j < 4u; j++) {
      let channel = quad * 4u + j;
      if (inside && channel < params.channels) {
        values[j] = value_at(first + channel * params.channel_stride);
      }
    }
    bad = bad || is_bad(values);
    let at = tap * params.tap_quads + params.first_quad + quad;
    store_quad((column / params.beside * params.row_quads + at) * params.beside + column % params.beside, values);
  }
  if (bad) {
    flags[params.tensor] = 1u;
  }
}
