// Four channels of a head and their partners, turned by a position, and where queries, keys and values go: of kernels with cos_sin, q, k_pages, v_pages, D8, PAGE
// and params.heads and kv_heads, whose layouts rope_kv_store.wgsl has.
const PADDING = 0xffffffffu;

// Channels 4 d to 4 d + 3, and those half a head behind them.
struct Pair {
  low: vec4<f32>,
  high: vec4<f32>,
}

fn turned(pair: Pair, position: u32, d: u32) -> Pair {
  let angle = (position * D8 + d) * 2u;
  let c = cos_sin[angle];
  let s = cos_sin[angle + 1u];
  return Pair(pair.low * c - pair.high * s, pair.high * c + pair.low * s);
}

fn store_query(row: u32, head: u32, d: u32, pair: Pair) {
  let to = (row * params.heads + head) * 2u * D8 + d;
  q[to] = pair.low;
  q[to + D8] = pair.high;
}

fn store_key(slot: u32, head: u32, d: u32, pair: Pair) {
  let at = (slot / PAGE * params.kv_heads + head) * 2u * D8 * PAGE + slot % PAGE;
  k_pages[at + d * PAGE] = store_kv(pair.low);
  k_pages[at + (d + D8) * PAGE] = store_kv(pair.high);
}

fn store_value(slot: u32, head: u32, d: u32, pair: Pair) {
  let at = ((slot / PAGE * params.kv_heads + head) * PAGE + slot % PAGE) * 2u * D8 + d;
  v_pages[at] = store_kv(pair.low);
  v_pages[at + D8] = store_kv(pair.high);
}
