// store_pages.wgsl for pages in storage textures, eight channels a texel, since a kernel can write whole texels only: of a key those of two neighbouring
// fours [P][K][D/8][PAGE], of a value four and those half a head behind them [P][K][PAGE][D/8]; 512 texels a row of the texture (gpu/tensor.ts: TEXEL_ROW).
const BESIDE = 1u;

// Of an even invocation that of the next. A head has a pair for each invocation, as often as it takes.
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
