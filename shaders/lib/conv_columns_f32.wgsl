// The four columns of a lane of conv1d_texels.wgsl, among the 32 of tile `tile`, and their weights of four values along K in f32:
// conv_columns_f16.wgsl with one column per texel.
fn column_of(tile: u32, lane: u32, j: u32) -> u32 {
  return tile * 32u + j * 8u + lane;
}

fn weights_of(tile: u32, lane: u32, quad: u32, quads: u32) -> array<vec4<f32>, 4> {
  let first = (tile / 2u * quads + quad) * 64u + tile % 2u * 32u + lane;
  var w: array<vec4<f32>, 4>;
  for (var j = 0u; j < 4u; j++) {
    let at = first + j * 8u;
    w[j] = bitcast<vec4<f32>>(textureLoad(weight, vec2<u32>(at % 512u, at / 512u)));
  }
  return w;
}
