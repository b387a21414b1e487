// Loads keys and values from pages in storage textures, eight channels per texel as store_pages_texels.wgsl stores them, 512 texels per row
// of the texture (TEXEL_ROW of gpu/tensor.ts): pages_buffer.wgsl for lavapipe, where a texture load costs a fraction of a buffer load
// (docs/decisions/attention.md).
const PAGE_QUADS = 2u;

// Lanes that a loop over keys or values takes from. It may be unrolled here, because a load is little code.
fn page_lanes() -> u32 {
  return lane_count();
}

// Channels 4 d4 to 4 d4 + 7 of a key.
fn key_words(head_base: u32, d4: u32, offset: u32) -> vec4<u32> {
  let at = head_base / 2u + d4 / 2u * PAGE + offset;
  return textureLoad(k_pages, vec2<u32>(at % 512u, at / 512u));
}

// Channels 4 d to 4 d + 3 of a value, and the four channels half a head further on.
fn value_words(value_at: u32, d: u32) -> vec4<u32> {
  let at = value_at / 2u + d;
  return textureLoad(v_pages, vec2<u32>(at % 512u, at / 512u));
}

fn quad_of(words: vec4<u32>, h: u32) -> vec4<f32> {
  return load_kv(select(words.xy, words.zw, h == 1u));
}

fn key_tail(at: u32) -> kv_t {
  return kv_t();
}

fn value_tail(at: u32) -> kv_t {
  return kv_t();
}
