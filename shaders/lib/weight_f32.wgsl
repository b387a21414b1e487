// Float weights in f32, four along K (weight_f16.wgsl is the f16 version).
alias weight_t = vec4<f32>;
const WEIGHT_WORDS = 4u;

fn unpack_weight(w: weight_t) -> vec4<f32> {
  return w;
}
