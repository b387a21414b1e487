// The four columns of a lane of conv1d_texels.wgsl, among the 32 of tile `tile`, and their weights of four values along K in f16. The
// texture is [N / 64][K / 4][64] of four f16, two neighbouring columns per texel, so a lane has neighbouring columns.
fn column_of(tile: u32, lane: u32, j: u32) -> u32 {
  return tile * 32u + j / 2u * 16u + 2u * lane + j % 2u;
}

fn weights_of(tile: u32, lane: u32, quad: u32, quads: u32) -> array<vec4<f32>, 4> {
  let at = (tile / 2u * quads + quad) * 32u + tile % 2u * 16u + lane;
  let low = textureLoad(weight, vec2<u32>(at % 512u, at / 512u));
  let high = textureLoad(weight, vec2<u32>((at + 8u) % 512u, (at + 8u) / 512u));
  return array<vec4<f32>, 4>(
    vec4<f32>(unpack2x16float(low.x), unpack2x16float(low.y)),
    vec4<f32>(unpack2x16float(low.z), unpack2x16float(low.w)),
    vec4<f32>(unpack2x16float(high.x), unpack2x16float(high.y)),
    vec4<f32>(unpack2x16float(high.z), unpack2x16float(high.w)),
  );
}
