// Four half-precision weights along K in two words. unpack2x16float needs no adapter feature, and on software adapters (one
// scalar load a lane and word) it halves the loads.
alias weight_t = vec2<u32>;
const WEIGHT_WORDS = 2u;

fn unpack_weight(w: weight_t) -> vec4<f32> {
  return vec4<f32>(unpack2x16float(w.x), unpack2x16float(w.y));
}
