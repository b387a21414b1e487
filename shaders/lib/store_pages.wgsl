// Where keys and values of rope_store.wgsl go in pages that are buffers: of kernels with k_pages, v_pages, D8, PAGE and params.kv_heads, whose layouts
// rope_kv_store.wgsl has.
// How far off the pair of channels is that store_key takes beside its own: it needs none.
const BESIDE = 0u;

// The pair of the invocation beside this one; and whether an invocation of a workgroup that deals out so many of each half of a head has one.
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
