// out[t, c] = silu(sum_j weight[j, c] * u[t - TAPS + 1 + j, c]): a causal convolution with one filter per channel, over the rows of each
// span, where u is the first C columns of x. With GATED (LFM2) x has columns b, g and i, u = b * i, and out = g * (the convolution),
// without SiLU. With HAS_BIAS the weights have a row more, which is added to the sum.
//
// x [T, x_stride * 4], weight [TAPS, C], out [T, C]. Before a span come the last TAPS - 1 inputs of its sequence, tails [slots, TAPS - 1,
// C], and those after it are left there (lib/spans.wgsl). Each invocation computes a span row by row with four channels in registers, so a
// row's bits depend neither on the span nor on the batch. Invocations (C / 4, spans). Reference: test/reference/recurrent.ts.
override WG: u32;
override GATED: bool;
override HAS_BIAS: bool;

struct Params {
  channels4: u32,
  x_stride4: u32,
}

@group(0) @binding(0) var<storage, read> x: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read> weight: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read> spans: array<vec4<u32>>;
@group(0) @binding(3) var<storage, read_write> tails: array<vec4<f32>>;
@group(0) @binding(4) var<storage, read_write> out: array<vec4<f32>>;
@group(0) @binding(5) var<uniform> params: Params;

@compute @workgroup_size(WG)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
  let channel = id.x;
  let span = spans[2u * id.y];
  let kept = spans[2u * id.y + 1u];
  if (channel >= params.channels4 || span.y == 0u) {
    return;
  }
  var taps: array<vec4<f32>, TAPS>;
  // The inputs before the current row, oldest first, then its own.
  var inputs: array<vec4<f32>, TAPS>;
  for (var j = 0u; j < TAPS; j++) {
    taps[j] = weight[j * params.channels4 + channel];
    inputs[j] = vec4<f32>();
  }
  var bias = vec4<f32>();
  if (HAS_BIAS) {
    bias = weight[TAPS * params.channels4 + channel];
  }
  if (span.z != NO_SLOT) {
    for (var j = 0u; j < TAPS - 1u; j++) {
      inputs[j] = tails[(span.z * (TAPS - 1u) + j) * params.channels4 + channel];
    }
  }
  for (var i = 0u; i < span.y; i++) {
    let row = span.x + i;
    let at = row * params.x_stride4 + channel;
    inputs[TAPS - 1u] = x[at];
    if (GATED) {
      inputs[TAPS - 1u] *= x[at + 2u * params.channels4];
    }
    var sum = taps[0] * inputs[0];
    for (var j = 1u; j < TAPS; j++) {
      sum = fma(taps[j], inputs[j], sum);
    }
    if (HAS_BIAS) {
      sum += bias;
    }
    if (GATED) {
      out[row * params.channels4 + channel] = sum * x[at + params.channels4];
    } else {
      out[row * params.channels4 + channel] = sum / (1.0 + exp(-sum));
    }
    for (var j = 1u; j < TAPS; j++) {
      inputs[j - 1u] = inputs[j];
    }
    for (var n = 0u; n < 2u; n++) {
      let copy = select(kept.xy, kept.zw, n == 1u);
      if (is_kept(copy, i)) {
        for (var j = 0u; j < TAPS - 1u; j++) {
          tails[(copy.x * (TAPS - 1u) + j) * params.channels4 + channel] = inputs[j];
        }
      }
    }
  }
  for (var j = 0u; j < TAPS - 1u; j++) {
    tails[(span.w * (TAPS - 1u) + j) * params.channels4 + channel] = inputs[j];
  }
}
