// q[t, h] = R rotate(qkv[t, h], positions[t]); int8 pages get (R rotate(k), v) of row t at slots[t], quantised: rope_kv_store.wgsl for
// pages of signed bytes. A head of a key or value is divided by its largest magnitude and stored as four channels per word; the magnitude
// follows in the page's last row: k [P][K][D/4 + 1][PAGE], v [P][K]([PAGE][D/4] then [PAGE]) of u32.
//
// Keys of some models have outlier channels, a hundred times as large as the others, which a scale of that size would round to zero. plan
// [K, 4 + D] says how each key/value head deals with them: (pair, unit, pair, unit), then a centre [D].
// - The centre is subtracted from a key. That changes all scores of a query by the same number, which its softmax cancels.
// - Two outlier pairs of channels (d and d + D/2, which rotate together) are kept apart. A key subtracts from each of these four channels
//   as many whole units as a five-bit count holds; lib/kv_int8.wgsl keeps the counts with the scale. A query carries its four channels,
//   times their units, behind its others: q [T, H, D + 4].
// - The rest of a key, and every query, is spread over the channels by one rotation R, the same for all: q . k = (R q) . (R k). With D = 8
//   P m, P a power of two and m odd, R is a Hadamard matrix of 8 P channels, mixed over m blocks by I - 2/m J, after pseudo-random signs
//   that no key is likely to follow.
// Each row is quantised without knowledge of others, so pages never change, whoever shares them.
//
// One workgroup per (head of q or k, row), because the magnitude is a maximum over the head. Shapes and all else as in rope_kv_store.wgsl.
// Reference: test/reference/kv.ts.
override WG: u32;
override D8: u32;
// The largest power of two that divides D8.
override P: u32;

const PADDING = 0xffffffffu;

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
@group(0) @binding(4) var<storage, read> plan: array<vec4<f32>>;
@group(0) @binding(5) var<storage, read_write> q: array<vec4<f32>>;
@group(0) @binding(6) var<storage, read_write> k_pages: array<kv_t>;
@group(0) @binding(7) var<storage, read_write> v_pages: array<kv_t>;
@group(0) @binding(8) var<uniform> params: Params;

// The rotated head in vec4s, first half, then second; and the mixed head, each vec4 of which only the invocation that computed it reads.
var<workgroup> channels: array<vec4<f32>, 2 * D8>;
var<workgroup> spread: array<vec4<f32>, 2 * D8>;
// The four outlier channels, pair by pair: a query's values times their units, or a key's counts.
var<workgroup> set_apart: array<f32, 4>;

fn largest(value: vec4<f32>) -> f32 {
  let magnitude = abs(value);
  return max(max(magnitude.x, magnitude.y), max(magnitude.z, magnitude.w));
}

// Signs of channels 4 i to 4 i + 3.
fn signs(i: u32) -> vec4<f32> {
  var hashed = (vec4<u32>(4u * i) + vec4<u32>(0u, 1u, 2u, 3u)) * 0x9e3779b1u;
  hashed = (hashed ^ (hashed >> vec4<u32>(15u))) * 0x85ebca6bu;
  return select(vec4<f32>(1.0), vec4<f32>(-1.0), (hashed >> vec4<u32>(31u)) == vec4<u32>(1u));
}

fn hadamard4(v: vec4<f32>) -> vec4<f32> {
  let sums = vec2<f32>(v.x + v.y, v.z + v.w);
  let differences = vec2<f32>(v.x - v.y, v.z - v.w);
  return vec4<f32>(sums.x + sums.y, differences.x + differences.y, sums.x - sums.y, differences.x - differences.y);
}

// channels = the rotated head (of a key, minus centre and counted units) times its signs, with the Hadamard steps within vec4s and between
// the halves. Also fills set_apart.
fn rotate(lane: u32, at: u32, angle: u32, is_key: bool, plan_at: u32) {
  let pairs = plan[plan_at];
  for (var d = lane; d < D8; d += WG) {
    let before_low = qkv[at + d];
    let before_high = qkv[at + d + D8];
    let c = cos_sin[angle + 2u * d];
    let s = cos_sin[angle + 2u * d + 1u];
    var low = before_low * c - before_high * s;
    var high = before_high * c + before_low * s;
    if (is_key) {
      low -= plan[plan_at + 1u + d];
      high -= plan[plan_at + 1u + D8 + d];
    }
    for (var i = 0u; i < 2u; i++) {
      let pair = u32(pairs[2u * i]);
      let unit = pairs[2u * i + 1u];
      if (pair / 4u != d) {
        continue;
      }
      let value = vec2<f32>(low[pair % 4u], high[pair % 4u]);
      if (is_key) {
        let counts = select(vec2<f32>(), clamp(round(value / unit), vec2<f32>(-16.0), vec2<f32>(15.0)), unit > 0.0);
        low[pair % 4u] -= counts.x * unit;
        high[pair % 4u] -= counts.y * unit;
        set_apart[2u * i] = counts.x;
        set_apart[2u * i + 1u] = counts.y;
      } else {
        set_apart[2u * i] = value.x * unit;
        set_apart[2u * i + 1u] = value.y * unit;
      }
    }
    let first = hadamard4(low * signs(d));
    let second = hadamard4(high * signs(d + D8));
    channels[d] = first + second;
    channels[d + D8] = first - second;
  }
  workgroupBarrier();
}

// Four channels of R (rotated head), times sqrt(8 P). Plain sums instead of butterflies, because on software adapters a barrier costs more
// than a pass over a half.
fn mix(i: u32) -> vec4<f32> {
  let half = i / D8 * D8;
  let d = i % D8;
  var own = vec4<f32>();
  var all = vec4<f32>();
  for (var other = 0u; other < D8; other++) {
    let value = channels[half + other];
    let signed = select(value, -value, (countOneBits(d & other & (P - 1u)) & 1u) == 1u);
    all += signed;
    own += select(vec4<f32>(), signed, d / P == other / P);
  }
  if (P == D8) {
    return all;
  }
  return own - 2.0 * f32(P) / f32(D8) * all;
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let head = group.x;
  let row = group.y;
  let at = (row * (params.heads + 2u * params.new_heads) + head) * 2u * D8;
  let slot = slots[row];
  if (head >= params.heads && slot == PADDING) {
    return;
  }
  let is_key = head >= params.heads;
  let kv_head = select(head * params.kv_heads / params.heads, head - params.heads, is_key);
  rotate(lane, at, positions[row] * 2u * D8, is_key, kv_head * (2u * D8 + 1u));
  let norm = inverseSqrt(8.0 * f32(P));
  let set_aside = vec4<f32>(set_apart[0], set_apart[1], set_apart[2], set_apart[3]);
  if (!is_key) {
    let to = (row * params.heads + head) * (2u * D8 + 1u);
    for (var d = lane; d < 2u * D8; d += WG) {
      q[to + d] = mix(d) * norm;
    }
    if (lane == 0u) {
      q[to + 2u * D8] = set_aside;
    }
    return;
  }
  let value_at = at + params.new_heads * 2u * D8;
  var key_scale = 0.0;
  var value_scale = 0.0;
  for (var d = lane; d < 2u * D8; d += WG) {
    spread[d] = mix(d) * norm;
    key_scale = max(key_scale, largest(spread[d]));
    value_scale = max(value_scale, largest(qkv[value_at + d]));
  }
  key_scale = round_key_scale(reduce_max(lane, key_scale));
  value_scale = reduce_max(lane, value_scale);
  let key_factor = select(1.0 / key_scale, 0.0, key_scale == 0.0);
  let value_factor = select(1.0 / value_scale, 0.0, value_scale == 0.0);
  let base = (slot / PAGE * params.kv_heads + kv_head) * (2u * D8 + SCALE_ROWS) * PAGE;
  let offset = slot % PAGE;
  for (var d = lane; d < 2u * D8; d += WG) {
    k_pages[base + d * PAGE + offset] = pack4x8snorm(spread[d] * key_factor);
    v_pages[base + offset * 2u * D8 + d] = pack4x8snorm(qkv[value_at + d] * value_factor);
  }
  if (lane == 0u) {
    let scale_at = base + 2u * D8 * PAGE + offset;
    k_pages[scale_at] = store_key_word(key_scale, set_aside);
    v_pages[scale_at] = bitcast<u32>(value_scale);
  }
}
