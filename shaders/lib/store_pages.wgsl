// Stores keys and values of rope_store.wgsl in pages that are buffers; for kernels with k_pages, v_pages, D8, PAGE and params.kv_heads, in
// the layouts of rope_kv_store.wgsl.
const BESIDE = 0u;

// The pair of the neighbouring invocation, which only textures need; and whether quad d of the `quads` that a workgroup has of each half of
// a head exists.
fn pair_beside(pair: Pair) -> Pair {
  return pair;
}

fn in_part(d: u32, quads: u32) -> bool {
  return d < quads;
}

fn store_key(slot: u32, head: u32, d: u32, pair: Pair, beside: Pair) {
  let at = (slot / PAGE * params.kv_heads + head) * 2u * D8 * PAGE + slot % PAGE;
  k_pages[at + d * PAGE] = store_kv(pair.low);
  k_pages[at + (d + D8) * PAGE] = store_kv(pair.high);
}

fn store_value(slot: u32, head: u32, d: u32, pair: Pair) {
  let at = ((slot / PAGE * params.kv_heads + head) * PAGE + slot % PAGE) * 2u * D8 + d;
  v_pages[at] = store_kv(pair.low);
  v_pages[at + D8] = store_kv(pair.high);
}
