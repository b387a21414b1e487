// Loads keys and values from pages in buffers, four channels per load, in the layouts of rope_kv_store.wgsl; for kernels with k_pages,
// v_pages and PAGE.
const PAGE_QUADS = 1u;

// LANES. For lavapipe, which has 8, from params: a loop with a load per iteration is then not unrolled, compiles in half the time and runs
// faster. GPUs may unroll theirs, and have many loads in flight.
fn page_lanes() -> u32 {
  if (LANES == 8u) {
    return params.lanes;
  }
  return lane_count();
}

fn key_words(head_base: u32, d4: u32, offset: u32) -> kv_t {
  return k_pages[head_base + d4 * PAGE + offset];
}

// Values that are channels of keys lie as these do.
fn value_words(at: u32, d4: u32) -> kv_t {
  return v_pages[at + d4 * select(1u, PAGE, IN_KEYS)];
}

fn quad_of(words: kv_t, h: u32) -> vec4<f32> {
  return load_kv(words);
}

// Words of a quantised page's last row.
fn key_tail(at: u32) -> kv_t {
  return k_pages[at];
}

fn value_tail(at: u32) -> kv_t {
  return v_pages[at];
}
