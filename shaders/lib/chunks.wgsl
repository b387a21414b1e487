// Quads of K that kernels for GPUs sum in order before they add the sum to those before it, all of them alike (engine/ops/product-shapes.ts): whole blocks of
// weights, and 32 chunks at most, so that as many slices of a workgroup have one each.
fn chunk_quads() -> u32 {
  return max(LEAST_QUADS, 8u * ((params.k4 + 255u) / 256u));
}

const LEAST_QUADS = 16u;
