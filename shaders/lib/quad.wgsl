// Tiles that are matrices, for adapters whose subgroup is a SIMD register of 4 and whose compiler keeps private arrays in memory
// (SwiftShader: 6x slower than registers) but unrolls matrix products.

// The vec4s of the 4 lanes as columns. A broadcast costs a fifth of a shuffle there, and both cost less than a load.
fn all_lanes(mine: vec4<f32>) -> mat4x4<f32> {
  return mat4x4<f32>(subgroupBroadcast(mine, 0u), subgroupBroadcast(mine, 1u), subgroupBroadcast(mine, 2u), subgroupBroadcast(mine, 3u));
}

// 16 rows by two quads of columns of an invocation: [4 columns x 4 rows] each. Two quads share the loads of rows, which take a third of the
// time.
struct tile_t {
  left0: mat4x4<f32>,
  left1: mat4x4<f32>,
  left2: mat4x4<f32>,
  left3: mat4x4<f32>,
  right0: mat4x4<f32>,
  right1: mat4x4<f32>,
  right2: mat4x4<f32>,
  right3: mat4x4<f32>,
}
