// Length of a chunk of K, in quads. Kernels for GPUs sum each chunk in order and then add the chunks in order, so all of them give the same
// bits (engine/ops/product-shapes.ts). A chunk is whole blocks of weights. There are at most 32 chunks, so that each can have its own slice
// of a workgroup.
fn chunk_quads() -> u32 {
  return max(LEAST_QUADS, 8u * ((params.k4 + 255u) / 256u));
}

const LEAST_QUADS = 16u;
