// Rotates four channels of a head and their partners by a position, for kernels with cos_sin and D8 in the layouts of rope_kv_store.wgsl.

// Channels 4 d to 4 d + 3, and their partners half a head further on.
struct Pair {
  low: vec4<f32>,
  high: vec4<f32>,
}

// Rotates a pair. Written as fma, because compilers may fuse either product into the sum, and several kernels must give the same bits.
fn turned(pair: Pair, position: u32, d: u32) -> Pair {
  let angle = (position * D8 + d) * 2u;
  let c = cos_sin[angle];
  let s = cos_sin[angle + 1u];
  return Pair(fma(pair.low, c, -(pair.high * s)), fma(pair.high, c, pair.low * s));
}
