// Four channels of a key in a storage texture, one a texel, row by row, 512 texels a row of the texture (gpu/tensor.ts: TEXEL_ROW).
fn key_quad(at: u32) -> vec4<f32> {
  return bitcast<vec4<f32>>(textureLoad(k, vec2<u32>(at % 512u, at / 512u)));
}
