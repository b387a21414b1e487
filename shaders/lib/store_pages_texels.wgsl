// Stores keys and values of rope_store.wgsl in pages that are storage textures, eight channels per texel, since a kernel can write only
// whole texels: a texel of a key holds two neighbouring quads [P][K][D/8][PAGE]; a texel of a value holds a quad and the one half a head
// further on [P][K][PAGE][D/8]. 512 texels per row of the texture (TEXEL_ROW of gpu/tensor.ts).
const BESIDE = 1u;

// The pair of the neighbouring invocation: an even one gets that of the next. Every invocation has a pair of the head, in each round.
fn pair_beside(pair: Pair) -> Pair {
  return Pair(subgroupShuffleXor(pair.low, 1u), subgroupShuffleXor(pair.high, 1u));
}

fn in_part(d: u32, quads: u32) -> bool {
  return true;
}

fn store_key(slot: u32, head: u32, d: u32, pair: Pair, beside: Pair) {
  if (d % 2u == 1u) {
    return;
  }
  let at = (slot / PAGE * params.kv_heads + head) * D8 * PAGE + slot % PAGE;
  put_key(at + d / 2u * PAGE, pair.low, beside.low);
  put_key(at + (d + D8) / 2u * PAGE, pair.high, beside.high);
}

fn put_key(at: u32, first: vec4<f32>, second: vec4<f32>) {
  textureStore(k_pages, vec2<u32>(at % 512u, at / 512u), vec4<u32>(store_kv(first), store_kv(second)));
}

fn store_value(slot: u32, head: u32, d: u32, pair: Pair) {
  let at = ((slot / PAGE * params.kv_heads + head) * PAGE + slot % PAGE) * D8 + d;
  textureStore(v_pages, vec2<u32>(at % 512u, at / 512u), vec4<u32>(store_kv(pair.low), store_kv(pair.high)));
}
