// Keys and values of pages in buffers, four channels a load: of kernels with k_pages, v_pages and PAGE, whose layouts rope_kv_store.wgsl has.
const PAGE_QUADS = 1u;

// LANES, but of lavapipe's 8 from the params: a loop with a load a turn stays a loop, which it compiles in half the time and runs faster. GPUs may write theirs out
// and have many loads under way at once.
fn page_lanes() -> u32 {
  if (LANES == 8u) {
    return params.lanes;
  }
  return lane_count();
}

fn key_words(head_base: u32, d4: u32, offset: u32) -> kv_t {
  return k_pages[head_base + d4 * PAGE + offset];
}

fn value_words(at: u32, d4: u32) -> kv_t {
  return v_pages[at + d4];
}

fn quad_of(words: kv_t, h: u32) -> vec4<f32> {
  return load_kv(words);
}

// Words of the row behind a quantised page.
fn key_tail(at: u32) -> kv_t {
  return k_pages[at];
}

fn value_tail(at: u32) -> kv_t {
  return v_pages[at];
}
