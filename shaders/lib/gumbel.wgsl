// Gumbel noise of a token. It depends only on (token / 4, position, seed), so neither on the batch nor on how the vocabulary is split.
// Needs lib/minus_log.wgsl.

// Jarzynski & Olano, Hash Functions for GPU Rendering (JCGT 2020).
fn pcg4d(seed: vec4<u32>) -> vec4<u32> {
  var v = seed * 1664525u + 1013904223u;
  v.x += v.y * v.w;
  v.y += v.z * v.x;
  v.z += v.x * v.y;
  v.w += v.y * v.z;
  v ^= v >> vec4<u32>(16u);
  v.x += v.y * v.w;
  v.y += v.z * v.x;
  v.z += v.x * v.y;
  v.w += v.y * v.z;
  return v;
}

// -log(-log(u)) for u in (0, 1) with 23 bits; with 24 the largest u would round to 1.
fn gumbel(bits: vec4<u32>) -> vec4<f32> {
  // Multiplied by a power of two, which is exact; a division may be rounded.
  let u = (vec4<f32>(bits >> vec4<u32>(9u)) + 0.5) * 1.1920928955078125e-7;
  return -log(vec4<f32>(minus_log(u.x), minus_log(u.y), minus_log(u.z), minus_log(u.w)));
}

// Noise of tokens 4 n to 4 n + 3, n = token / 4.
fn gumbel_noise(row: SamplingRow, token: u32) -> vec4<f32> {
  return gumbel(pcg4d(vec4<u32>(token / 4u, row.position, row.seed_low, row.seed_high)));
}

// A logit with its noise; the argmax of these is a draw from softmax(logits / T).
fn perturbed(row: SamplingRow, logit: f32, noise: f32) -> f32 {
  return logit * row.inverse_temperature + noise;
}
