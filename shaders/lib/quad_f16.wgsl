// Four weights along K of four neighbouring columns in f16, unpacked to a matrix with a column for each (quad_f32.wgsl is the f32 version).
struct weight_t {
  low: vec4<u32>,
  high: vec4<u32>,
}

fn four_columns(w: weight_t) -> mat4x4<f32> {
  return mat4x4<f32>(
    vec4<f32>(unpack2x16float(w.low.x), unpack2x16float(w.low.y)),
    vec4<f32>(unpack2x16float(w.low.z), unpack2x16float(w.low.w)),
    vec4<f32>(unpack2x16float(w.high.x), unpack2x16float(w.high.y)),
    vec4<f32>(unpack2x16float(w.high.z), unpack2x16float(w.high.w)),
  );
}
