// Stores four channels of a head and their partners, which lib/turned.wgsl rotates; for kernels with cos_sin, positions, slots, q, D8,
// params.heads and params.kv_heads, in the layouts of rope_kv_store.wgsl. store_pages*.wgsl stores keys and values.
const PADDING = 0xffffffffu;

fn store_query(row: u32, head: u32, d: u32, pair: Pair) {
  let to = (row * params.heads + head) * 2u * D8 + d;
  q[to] = pair.low;
  q[to + D8] = pair.high;
}

// Rotates and stores four channels and partners of a head, counted over queries, then keys, then values. All invocations call it together.
fn store_head(row: u32, head: u32, d: u32, pair: Pair) {
  let slot = slots[row];
  var own = pair;
  if (head < params.heads + params.kv_heads) {
    own = turned(pair, positions[row], d);
  }
  if (head < params.heads) {
    store_query(row, head, d, own);
  } else if (slot != PADDING && head >= params.heads + params.kv_heads) {
    store_value(slot, head - params.heads - params.kv_heads, d, own);
  } else if (slot != PADDING) {
    store_key(slot, head - params.heads, d, own, pair_beside(own));
  }
}
