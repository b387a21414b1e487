// The activation ACTIVATION of four values (lib/activation.wgsl).
fn activate4(v: vec4<f32>) -> vec4<f32> {
  if (ACTIVATION == ACT_SILU) {
    return v / (1.0 + exp(-v));
  }
  return vec4<f32>(activate(ACTIVATION, v.x), activate(ACTIVATION, v.y), activate(ACTIVATION, v.z), activate(ACTIVATION, v.w));
}
