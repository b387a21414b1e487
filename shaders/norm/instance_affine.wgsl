// mean, scale / sqrt(var + eps) and shift of each channel: instance norm and a style as shift + factor * (x - mean).
//
// partial: chunks of instance_stats.wgsl, combined in order (Chan et al. 1979); style: scale [C] then shift [C] from value `style_first` on;
// affine [3][c4] of vec4: mean, factor, shift. One invocation a channel group. Reference: test/reference/adain.ts.
override WG: u32;

struct Params {
  rows: u32,
  c4: u32,
  chunk: u32,
  chunks: u32,
  style_first4: u32,
  eps: f32,
}

@group(0) @binding(0) var<storage, read> partial: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read> style: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read_write> affine: array<vec4<f32>>;
@group(0) @binding(3) var<uniform> params: Params;

@compute @workgroup_size(WG)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
  let c = id.x;
  if (c >= params.c4) {
    return;
  }
  var mean = vec4<f32>();
  var squares = vec4<f32>();
  var count = 0.0;
  for (var i = 0u; i < params.chunks; i++) {
    let n = f32(min(params.chunk, params.rows - i * params.chunk));
    let at = (i * params.c4 + c) * 2u;
    let delta = partial[at] - mean;
    let total = count + n;
    mean += delta * (n / total);
    squares += partial[at + 1u] + delta * delta * (count * n / total);
    count = total;
  }
  affine[c] = mean;
  affine[params.c4 + c] = style[params.style_first4 + c] * inverseSqrt(squares / count + params.eps);
  affine[2u * params.c4 + c] = style[params.style_first4 + params.c4 + c];
}
