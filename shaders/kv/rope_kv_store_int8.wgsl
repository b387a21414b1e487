// rope_kv_store.wgsl into pages of signed bytes: a key (rotated) or value of one row and head is divided by its largest magnitude, stored as four
// channels a word, and the magnitude behind them in the page's scale row: k [P][K][D/4 + 1][PAGE], v [P][K]([PAGE][D/4] then [PAGE]) of u32.
//
// One workgroup a (head of q or k, row): the magnitude is a maximum over the head. Shapes and the rest as in rope_kv_store.wgsl. Reference: test/reference/kv.ts.
override WG: u32;
override D8: u32;

const PADDING = 0xffffffffu;

struct Params {
  heads: u32,
  kv_heads: u32,
}

@group(0) @binding(0) var<storage, read> qkv: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read> cos_sin: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read> positions: array<u32>;
@group(0) @binding(3) var<storage, read> slots: array<u32>;
@group(0) @binding(4) var<storage, read_write> q: array<vec4<f32>>;
@group(0) @binding(5) var<storage, read_write> k_pages: array<kv_t>;
@group(0) @binding(6) var<storage, read_write> v_pages: array<kv_t>;
@group(0) @binding(7) var<uniform> params: Params;

// Channels d * 4 .. of the first half of a head, and their partners of the second.
struct Halves {
  low: vec4<f32>,
  high: vec4<f32>,
}

fn rotated(at: u32, angle: u32, d: u32) -> Halves {
  let low = qkv[at + d];
  let high = qkv[at + d + D8];
  let c = cos_sin[angle + 2u * d];
  let s = cos_sin[angle + 2u * d + 1u];
  return Halves(low * c - high * s, high * c + low * s);
}

fn largest(value: vec4<f32>) -> f32 {
  let magnitude = abs(value);
  return max(max(magnitude.x, magnitude.y), max(magnitude.z, magnitude.w));
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let head = group.x;
  let row = group.y;
  let at = (row * (params.heads + 2u * params.kv_heads) + head) * 2u * D8;
  let angle = positions[row] * 2u * D8;
  if (head < params.heads) {
    let to = (row * params.heads + head) * 2u * D8;
    for (var d = lane; d < D8; d += WG) {
      let halves = rotated(at, angle, d);
      q[to + d] = halves.low;
      q[to + d + D8] = halves.high;
    }
    return;
  }
  let slot = slots[row];
  if (slot == PADDING) {
    return;
  }
  let value_at = at + params.kv_heads * 2u * D8;
  var key_scale = 0.0;
  var value_scale = 0.0;
  for (var d = lane; d < D8; d += WG) {
    let key = rotated(at, angle, d);
    key_scale = max(key_scale, max(largest(key.low), largest(key.high)));
    value_scale = max(value_scale, max(largest(qkv[value_at + d]), largest(qkv[value_at + d + D8])));
  }
  key_scale = reduce_max(lane, key_scale);
  value_scale = reduce_max(lane, value_scale);
  let key_factor = select(1.0 / key_scale, 0.0, key_scale == 0.0);
  let value_factor = select(1.0 / value_scale, 0.0, value_scale == 0.0);
  let base = (slot / PAGE * params.kv_heads + head - params.heads) * (2u * D8 + SCALE_ROWS) * PAGE;
  let offset = slot % PAGE;
  for (var d = lane; d < D8; d += WG) {
    let key = rotated(at, angle, d);
    k_pages[base + d * PAGE + offset] = pack4x8snorm(key.low * key_factor);
    k_pages[base + (d + D8) * PAGE + offset] = pack4x8snorm(key.high * key_factor);
    v_pages[base + offset * 2u * D8 + d] = pack4x8snorm(qkv[value_at + d] * value_factor);
    v_pages[base + offset * 2u * D8 + d + D8] = pack4x8snorm(qkv[value_at + d + D8] * value_factor);
  }
  if (lane == 0u) {
    let scale_at = base + 2u * D8 * PAGE + offset;
    k_pages[scale_at] = bitcast<u32>(key_scale);
    v_pages[scale_at] = bitcast<u32>(value_scale);
  }
}
