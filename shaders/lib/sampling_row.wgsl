// Sampling settings of one row, as engine/ops/sampling-row.ts writes them, and an order-preserving map of floats to integers.
struct SamplingRow {
  // 0 = greedy.
  inverse_temperature: f32,
  seed_low: u32,
  // High half of the seed, mixed with the choice index.
  seed_high: u32,
  // Position that the sampled token will have; with the seed it selects the random numbers.
  position: u32,
  // Element of last_tokens that gets the token.
  slot: u32,
  // The cuts, top_p to top_n_sigma, in the order of engine/sampling.ts.
  top_p: f32,
  // 0 = off.
  top_k: u32,
  min_p: f32,
  top_n_sigma: f32,
}

// Whether any cut rules tokens out.
fn has_cuts(row: SamplingRow) -> bool {
  return row.top_p < 1.0 || row.top_k > 0u || row.min_p > 0.0 || row.top_n_sigma > 0.0;
}

// Order-preserving map of floats to integers.
fn float_key(value: f32) -> u32 {
  let bits = bitcast<u32>(value);
  return select(bits | 0x80000000u, ~bits, (bits & 0x80000000u) != 0u);
}

fn key_float(key: u32) -> f32 {
  return bitcast<f32>(select(~key, key & 0x7fffffffu, (key & 0x80000000u) != 0u));
}
