// Four weights along K as stored, and how they widen. See weight_f16.wgsl for the other storage.
alias weight_t = vec4<f32>;
const WEIGHT_WORDS = 4u;

fn unpack_weight(w: weight_t) -> vec4<f32> {
  return w;
}
