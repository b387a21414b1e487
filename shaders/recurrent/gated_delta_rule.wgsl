// The gated delta rule (https://arxiv.org/abs/2412.06464), row by row of each span. For value head h and its key head, with q and k
// normalised to length 1:
//   S = exp(a[h] softplus(alpha[t, h] + bias[h])) S;  d = sigmoid(beta[t, h]) (v[t, h] - S k[t]);
//   S = S + d k[t]^T;  out[t, h] = S q[t] / sqrt(Dk).
//
// qkv [T, 2 Hk Dk + Hv Dv], heads of q, then k, then v; gates [T, gate_stride] with beta from column beta_column on and alpha from
// alpha_column on; decay [2, Hv]: a (negative), bias. states [slots, Hv, Dv, Dk], read and written as lib/spans.wgsl says; out [T, Hv Dv].
// Value head h has key head h / group mod Hk.
// A workgroup holds COLUMNS4 * 4 rows of S in registers: value channels, which are independent of each other. LANES invocations share the
// key channels of a row. All reductions of a row of the batch, squared lengths included, are done at once on the old state: S k and S q do
// not wait for each other. Every row is computed in the same way whatever its span, so its bits depend neither on the batch nor on how a
// prompt was cut into chunks. Grid (ceil(Dv / COLUMNS), Hv, spans). Reference: test/reference/recurrent.ts.

// The epsilon of l2norm in transformers.
const LENGTH_EPS = 1e-6;
struct Params {
  heads: u32,
  key_heads: u32,
  group: u32,
  values4: u32,
  k_first4: u32,
  v_first4: u32,
  qkv_stride4: u32,
  gate_stride: u32,
  beta_column: u32,
  alpha_column: u32,
  scale: f32,
  lanes: u32,
}

@group(0) @binding(0) var<storage, read> qkv: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read> gates: array<f32>;
@group(0) @binding(2) var<storage, read> decay: array<f32>;
@group(0) @binding(3) var<storage, read> spans: array<vec4<u32>>;
@group(0) @binding(4) var<storage, read_write> states: array<vec4<f32>>;
@group(0) @binding(5) var<storage, read_write> out: array<vec4<f32>>;
@group(0) @binding(6) var<uniform> params: Params;

@compute @workgroup_size(LANES)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let span = spans[2u * group.z];
  let kept = spans[2u * group.z + 1u];
  if (span.y == 0u) {
    return;
  }
  let head = group.y;
  let first4 = group.x * COLUMNS4;
  let key_at = head / params.group % params.key_heads * D4;
  var state = load_state(span.z, head, first4, lane);
  let slope = decay[head];
  let bias = decay[params.heads + head];
  // Three parts: up to each of the two places where the state is copied, then to the end.
  var i = 0u;
  for (var part = 0u; part < 3u; part++) {
    let stop = select(select(kept.xy, kept.zw, part == 1u), span.wy, part == 2u);
    if (stop.x == NO_SLOT) {
      continue;
    }
    for (; i < stop.y; i++) {
      let row = span.x + i;
      let at = row * params.qkv_stride4;
      var q = array<vec4<f32>, SLICES>();
      var k = array<vec4<f32>, SLICES>();
      for (var s = 0u; s < SLICES; s++) {
        let d4 = s * LANES + lane;
        if (d4 < D4) {
          q[s] = qkv[at + key_at + d4];
          k[s] = qkv[at + params.k_first4 + key_at + d4];
        }
      }
      // (k k, q q, q k), then S k and S q of four value channels each.
      var sums = array<vec4<f32>, SUMS>();
      for (var s = 0u; s < SLICES; s++) {
        sums[0] += vec4<f32>(dot(k[s], k[s]), dot(q[s], q[s]), dot(q[s], k[s]), 0.0);
        for (var c = 0u; c < COLUMNS4; c++) {
          let first = 4u * c * SLICES + s;
          sums[1u + 2u * c] += rows_times(&state, first, k[s]);
          sums[2u + 2u * c] += rows_times(&state, first, q[s]);
        }
      }
      sum_lanes(lane, &sums);
      let k_scale = inverseSqrt(sums[0].x + LENGTH_EPS);
      let q_scale = inverseSqrt(sums[0].y + LENGTH_EPS) * params.scale;
      let meet = sums[0].z * k_scale;
      let gate_at = row * params.gate_stride + head;
      let factor = exp(slope * softplus(gates[gate_at + params.alpha_column] + bias));
      let strength = 1.0 / (1.0 + exp(-gates[gate_at + params.beta_column]));
      for (var c = 0u; c < COLUMNS4; c++) {
        let v4 = min(first4 + c, params.values4 - 1u);
        let v = qkv[at + params.v_first4 + head * params.values4 + v4];
        let change = (v - sums[1u + 2u * c] * (factor * k_scale)) * strength;
        if (lane == 0u && first4 + c < params.values4) {
          out[(row * params.heads + head) * params.values4 + v4] = (sums[2u + 2u * c] * factor + change * meet) * q_scale;
        }
        let added = change * k_scale;
        for (var s = 0u; s < SLICES; s++) {
          let first = 4u * c * SLICES + s;
          update_rows(&state, first, factor, added, k[s]);
        }
      }
    }
    store_state(stop.x, head, first4, lane, &state);
  }
}
