// Loads four channels of a key from a storage texture, one vec4 per texel, row by row, 512 texels per row of the texture (gpu/tensor.ts:
// TEXEL_ROW).
fn key_quad(at: u32) -> vec4<f32> {
  return bitcast<vec4<f32>>(textureLoad(k, vec2<u32>(at % 512u, at / 512u)));
}
