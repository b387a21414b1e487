// rope_kv_store.wgsl into pages of signed bytes: a key (rotated) or value of one row and head is divided by its largest magnitude, stored as four
// channels a word, and the magnitude behind them in the page's scale row: k [P][K][D/4 + 1][PAGE], v [P][K]([PAGE][D/4] then [PAGE]) of u32.
//
// Some models' keys have a channel that is a hundred times as large as the others, which a scale of its size would round away. So queries and keys
// are spread over their channels first, by one rotation R for all of them: q . k = (R q) . (R k). With D = 8 P m, P a power of two and m odd, R is a
// Hadamard matrix of 8 P channels, mixed over m blocks by I - 2/m J, after signs that no key is likely to follow. It knows no other row: pages stay
// what they are, whoever shares them.
//
// One workgroup a (head of q or k, row): the magnitude is a maximum over the head. Shapes and the rest as in rope_kv_store.wgsl. Reference: test/reference/kv.ts.
override WG: u32;
override D8: u32;
// The largest power of two that divides D8.
override P: u32;

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

// The rotated head's channels in fours, its first half, then its second; and what becomes of them, each four for the invocation that made it.
var<workgroup> channels: array<vec4<f32>, 2 * D8>;
var<workgroup> spread: array<vec4<f32>, 2 * D8>;

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

// channels = the rotated head with its signs, mixed within fours and between the halves.
fn rotate(lane: u32, at: u32, angle: u32) {
  for (var d = lane; d < D8; d += WG) {
    let low = qkv[at + d];
    let high = qkv[at + d + D8];
    let c = cos_sin[angle + 2u * d];
    let s = cos_sin[angle + 2u * d + 1u];
    let first = hadamard4((low * c - high * s) * signs(d));
    let second = hadamard4((high * c + low * s) * signs(d + D8));
    channels[d] = first + second;
    channels[d + D8] = first - second;
  }
  workgroupBarrier();
}

// Four channels of R (rotated head), times sqrt(8 P). Sums instead of butterflies: on software adapters a barrier costs more than a pass over a half.
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
  let at = (row * (params.heads + 2u * params.kv_heads) + head) * 2u * D8;
  let slot = slots[row];
  if (head >= params.heads && slot == PADDING) {
    return;
  }
  rotate(lane, at, positions[row] * 2u * D8);
  let norm = inverseSqrt(8.0 * f32(P));
  if (head < params.heads) {
    let to = (row * params.heads + head) * 2u * D8;
    for (var d = lane; d < 2u * D8; d += WG) {
      q[to + d] = mix(d) * norm;
    }
    return;
  }
  let value_at = at + params.kv_heads * 2u * D8;
  var key_scale = 0.0;
  var value_scale = 0.0;
  for (var d = lane; d < 2u * D8; d += WG) {
    spread[d] = mix(d);
    key_scale = max(key_scale, largest(spread[d]));
    value_scale = max(value_scale, largest(qkv[value_at + d]));
  }
  key_scale = reduce_max(lane, key_scale);
  value_scale = reduce_max(lane, value_scale);
  let key_factor = select(1.0 / key_scale, 0.0, key_scale == 0.0);
  let value_factor = select(1.0 / value_scale, 0.0, value_scale == 0.0);
  let base = (slot / PAGE * params.kv_heads + head - params.heads) * (2u * D8 + SCALE_ROWS) * PAGE;
  let offset = slot % PAGE;
  for (var d = lane; d < 2u * D8; d += WG) {
    k_pages[base + d * PAGE + offset] = pack4x8snorm(spread[d] * key_factor);
    v_pages[base + offset * 2u * D8 + d] = pack4x8snorm(qkv[value_at + d] * value_factor);
  }
  if (lane == 0u) {
    let scale_at = base + 2u * D8 * PAGE + offset;
    k_pages[scale_at] = bitcast<u32>(key_scale * norm);
    v_pages[scale_at] = bitcast<u32>(value_scale);
  }
}
