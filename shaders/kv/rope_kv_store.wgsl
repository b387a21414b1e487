// q[t, h] = rotate(qkv[t, h], positions[t]); the pages get (rotate(k), v) of row t at slots[t].
//
// qkv [T, H + 2 K, D], heads of q, then k, then v; q [T, H, D]. Rotation is Hugging Face's half-split form: channel d < D/2 pairs with d +
// D/2. cos_sin [S, D/2] holds (cos, sin) interleaved in fours: row s has D/8 times (4 cosines, 4 sines). Keys lie in pages as
// [P][K][D/4][PAGE], because attention reads neighbouring positions; values as [P][K][PAGE][D/4], because it reads neighbouring channels;
// in textures as store_pages_texels.wgsl stores them. A slot is page * PAGE + offset; rows with slot 0xffffffff are padding and store
// nothing. D is a multiple of 8.
// One invocation per four channels and their partners of one head; invocations (H + K heads, T). The invocation of a key also stores the
// value of the same head. Reference: test/reference/kv.ts.
override WG: u32;
// D / 8; an override, because division by a constant is cheap and by a variable is not.
override D8: u32;

struct Params {
  heads: u32,
  kv_heads: u32,
  // Key heads in qkv, and as many value heads: K, or 0 where the layer reads another layer's pages.
  new_heads: u32,
}

@group(0) @binding(0) var<storage, read> qkv: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read> cos_sin: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read> positions: array<u32>;
@group(0) @binding(3) var<storage, read> slots: array<u32>;
@group(0) @binding(4) var<storage, read_write> q: array<vec4<f32>>;
@group(0) @binding(5) var<storage, read_write> k_pages: array<kv_t>;
@group(0) @binding(6) var<storage, read_write> v_pages: array<kv_t>;
@group(0) @binding(7) var<uniform> params: Params;

@compute @workgroup_size(WG)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
  let rotated = params.heads + params.new_heads;
  let head = id.x / D8;
  let d = id.x % D8;
  let row = id.y;
  if (head >= rotated) {
    return;
  }
  let at = (row * (rotated + params.new_heads) + head) * 2u * D8 + d;
  let pair = turned(Pair(qkv[at], qkv[at + D8]), positions[row], d);
  if (head < params.heads) {
    store_query(row, head, d, pair);
    return;
  }
  let slot = slots[row];
  if (slot == PADDING) {
    return;
  }
  let value = at + params.new_heads * 2u * D8;
  let beside = turned(Pair(qkv[at + BESIDE], qkv[at + BESIDE + D8]), positions[row], d + BESIDE);
  store_key(slot, head - params.heads, d, pair, beside);
  store_value(slot, head - params.heads, d, Pair(qkv[value], qkv[value + D8]));
}
