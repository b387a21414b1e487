// Stores four neighbouring values in `out`, a storage texture: one quad per texel, 512 texels per row of the texture (gpu/tensor.ts:
// TEXEL_ROW).
fn put_quad(at: u32, value: vec4<f32>) {
  textureStore(out, vec2<u32>(at % 512u, at / 512u), bitcast<vec4<u32>>(value));
}
