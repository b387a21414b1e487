// out[t, h] = sum over all keys s of softmax(dot(q[t, h], k[s, h]) * scale) v[s, h]: dense.wgsl for one sequence, on adapters whose
// subgroup is a SIMD register of 4 (lib/quad.wgsl says why tiles are matrices there).
//
// Operands and grid are those of dense.wgsl, with tiles of 16 queries, 4 per invocation. Keys come 16 at a time under an online softmax;
// the 4 invocations load rows of k and v together, one row each. 9x dense.wgsl on SwiftShader (test/bench/SPEED.md). Reference:
// test/reference/dense-attention.ts.
const LOWEST = -1e30;
const QUERIES = 16u;

struct Params {
  queries: u32,
  keys: u32,
  q_stride4: u32,
  q_column4: u32,
  k_stride4: u32,
  k_column4: u32,
  v_stride4: u32,
  v_column4: u32,
  out_stride4: u32,
  // D4, and the number of lanes (4 here; not read).
  d4: u32,
  lanes: u32,
  scale: f32,
}

@group(0) @binding(0) var<storage, read> q: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read> k: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read> v: array<vec4<f32>>;
@group(0) @binding(3) var<storage, read_write> out: array<vec4<f32>>;
@group(0) @binding(4) var<uniform> params: Params;

// [4 keys x 4 queries]: dot products over four channels, of each query with each key.
fn scores(queries: mat4x4<f32>, keys: mat4x4<f32>) -> mat4x4<f32> {
  return mat4x4<f32>(queries[0] * keys, queries[1] * keys, queries[2] * keys, queries[3] * keys);
}

// Maximum score of each query over four keys.
fn highest_of(s: mat4x4<f32>) -> vec4<f32> {
  let keys = transpose(s);
  return max(max(keys[0], keys[1]), max(keys[2], keys[3]));
}

// Turns scores into softmax weights; 0 for keys past the end.
fn weigh(s: mat4x4<f32>, highest: vec4<f32>, there: vec4<bool>) -> mat4x4<f32> {
  let none = vec4<f32>();
  return mat4x4<f32>(
    select(none, exp2(s[0] - highest.x), there),
    select(none, exp2(s[1] - highest.y), there),
    select(none, exp2(s[2] - highest.z), there),
    select(none, exp2(s[3] - highest.w), there),
  );
}

@compute @workgroup_size(4)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(subgroup_invocation_id) lane: u32) {
  let head = group.y * D4;
  let first_row = group.x * QUERIES;
  let rows = min(QUERIES, params.queries - first_row);
  let four = vec4<u32>(0u, 1u, 2u, 3u);
  // Rows beyond the last repeat it, and are not written.
  let q_at = (first_row + min(four + lane * 4u, vec4<u32>(rows - 1u))) * params.q_stride4 + params.q_column4 + head;
  var highest = vec4<f32>(LOWEST);
  var sum = vec4<f32>();
  // [4 channels x 4 queries] each.
  var acc = array<mat4x4<f32>, D4>();
  for (var start = 0u; start < params.keys; start += 16u) {
    let key_rows = min(start + lane + 4u * four, vec4<u32>(params.keys - 1u));
    let k_at = key_rows * params.k_stride4 + params.k_column4 + head;
    let v_at = key_rows * params.v_stride4 + params.v_column4 + head;
    var s0 = mat4x4<f32>();
    var s1 = mat4x4<f32>();
    var s2 = mat4x4<f32>();
    var s3 = mat4x4<f32>();
    for (var d = 0u; d < params.d4; d++) {
      let queries = mat4x4<f32>(q[q_at.x + d], q[q_at.y + d], q[q_at.z + d], q[q_at.w + d]);
      s0 += scores(queries, all_lanes(k[k_at.x + d]));
      s1 += scores(queries, all_lanes(k[k_at.y + d]));
      s2 += scores(queries, all_lanes(k[k_at.z + d]));
      s3 += scores(queries, all_lanes(k[k_at.w + d]));
    }
    s0 *= params.scale;
    s1 *= params.scale;
    s2 *= params.scale;
    s3 *= params.scale;
    // Keys past the end repeat the last one, so they do not change a maximum.
    let new_highest = max(max(highest, max(highest_of(s0), highest_of(s1))), max(highest_of(s2), highest_of(s3)));
    let factor = exp2(highest - new_highest);
    highest = new_highest;
    let left = vec4<u32>(params.keys - start);
    s0 = weigh(s0, highest, four < left);
    s1 = weigh(s1, highest, four + 4u < left);
    s2 = weigh(s2, highest, four + 8u < left);
    s3 = weigh(s3, highest, four + 12u < left);
    sum = sum * factor + vec4<f32>(1.0) * (s0 + s1 + s2 + s3);
    for (var d = 0u; d < params.d4; d++) {
      let old = acc[d];
      acc[d] = mat4x4<f32>(old[0] * factor.x, old[1] * factor.y, old[2] * factor.z, old[3] * factor.w)
        + all_lanes(v[v_at.x + d]) * s0 + all_lanes(v[v_at.y + d]) * s1
        + all_lanes(v[v_at.z + d]) * s2 + all_lanes(v[v_at.w + d]) * s3;
    }
  }
  for (var i = 0u; i < 4u; i++) {
    let row = lane * 4u + i;
    for (var d = 0u; d < params.d4 && row < rows; d++) {
      out[(first_row + row) * params.out_stride4 + head + d] = acc[d][i] / sum[i];
    }
  }
}
