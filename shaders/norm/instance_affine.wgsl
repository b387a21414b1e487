// affine[s] = mean, scale / sqrt(var + eps) and shift of each channel of sequence s: instance norm and style as shift + factor * (x -
// mean).
//
// partial: chunks of instance_stats.wgsl, combined in order (Chan et al. 1979); style: one row per sequence, with scale [C], then shift
// [C], from quad `style_first4` on; affine [sequences][3][c4] of vec4: mean, factor, shift. One invocation per quad of channels. Reference:
// test/reference/adain.ts.
override WG: u32;
override SPANS: bool;

struct Params {
  rows_unit: u32,
  rows: u32,
  c4: u32,
  chunk: u32,
  style_first4: u32,
  style_stride4: u32,
  eps: f32,
}

@group(0) @binding(0) var<storage, read> partial: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read> style: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read> spans: array<vec4<u32>>;
@group(0) @binding(3) var<storage, read_write> affine: array<vec4<f32>>;
@group(0) @binding(4) var<uniform> params: Params;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let c = group.x * WG + lane;
  if (c >= params.c4) {
    return;
  }
  let span = span_of(group.z);
  let rows = span_rows(span, params.rows_unit, params.rows);
  let first = span.x * params.rows_unit / params.chunk + group.z;
  var mean = vec4<f32>();
  var squares = vec4<f32>();
  var count = 0.0;
  for (var i = 0u; i * params.chunk < rows; i++) {
    let n = f32(min(params.chunk, rows - i * params.chunk));
    let at = ((first + i) * params.c4 + c) * 2u;
    let delta = partial[at] - mean;
    let total = count + n;
    mean += delta * (n / total);
    squares += partial[at + 1u] + delta * delta * (count * n / total);
    count = total;
  }
  let style_at = group.z * params.style_stride4 + params.style_first4 + c;
  let out = group.z * 3u * params.c4 + c;
  affine[out] = mean;
  affine[out + params.c4] = style[style_at] * inverseSqrt(squares / count + params.eps);
  affine[out + 2u * params.c4] = style[style_at + params.c4];
}
