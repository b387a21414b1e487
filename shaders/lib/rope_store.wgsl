// Four channels of a head and their partners, turned by a position, and where queries go: of kernels with cos_sin, positions, slots, q, D8 and params.heads and
// kv_heads, whose layouts rope_kv_store.wgsl has. Keys and values go where store_pages*.wgsl says.
const PADDING = 0xffffffffu;

// Channels 4 d to 4 d + 3, and those half a head behind them.
struct Pair {
  low: vec4<f32>,
  high: vec4<f32>,
}

// Written as fma: compilers may fuse either product of such a sum with it, and several kernels have to give the same bits.
fn turned(pair: Pair, position: u32, d: u32) -> Pair {
  let angle = (position * D8 + d) * 2u;
  let c = cos_sin[angle];
  let s = cos_sin[angle + 1u];
  return Pair(fma(pair.low, c, -(pair.high * s)), fma(pair.high, c, pair.low * s));
}

fn store_query(row: u32, head: u32, d: u32, pair: Pair) {
  let to = (row * params.heads + head) * 2u * D8 + d;
  q[to] = pair.low;
  q[to + D8] = pair.high;
}

// Of a head among those of queries, then keys, then values; all invocations at once.
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
