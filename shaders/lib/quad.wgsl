// For adapters whose subgroup is a SIMD register of 4 and whose compiler keeps private arrays in memory (SwiftShader: 6x slower than
// registers): tiles are matrices, whose products it unrolls.

// The vectors of the 4 lanes as columns. A broadcast costs a fifth of a shuffle there, and both less than a load.
fn all_lanes(mine: vec4<f32>) -> mat4x4<f32> {
  return mat4x4<f32>(subgroupBroadcast(mine, 0u), subgroupBroadcast(mine, 1u), subgroupBroadcast(mine, 2u), subgroupBroadcast(mine, 3u));
}
