// Float weights in f16, four along K in two words. unpack2x16float needs no adapter feature, and on software adapters, which load word by
// word, f16 halves the loads.
alias weight_t = vec2<u32>;
const WEIGHT_WORDS = 2u;

fn unpack_weight(w: weight_t) -> vec4<f32> {
  return vec4<f32>(unpack2x16float(w.x), unpack2x16float(w.y));
}
