// The selective scan of Mamba 2 (https://arxiv.org/abs/2405.21060), row by row of each span. For head h and its group g:
//   d = softplus(steps[t, h] + bias[h]);  S = exp(a[h] d) S + d x[t, h] B[t, g]^T;  out[t, h] = S C[t, g] + skip[h] x[t, h].
//
// xbc [T, H P + 2 G N], heads of x, then groups of B, then of C; steps [T, step_stride] with the heads' from column step_column on; of_heads
// [3, H]: a (negative), bias, skip. states [slots, H, P, N], read and written as lib/spans.wgsl says; out [T, H P]. Consecutive heads,
// params.group of them, are a group; N is 4 D4.
// A workgroup holds COLUMNS4 * 4 rows of S in registers, which are independent of each other. LANES invocations share the N channels of a
// row. The state does not wait for sums over lanes; outputs alone do. Every row is computed in the same way whatever its span, so its bits
// depend neither on the batch nor on how a prompt was cut into chunks. Grid (ceil(P / COLUMNS), H, spans). Reference:
// test/reference/recurrent.ts.

struct Params {
  heads: u32,
  group: u32,
  values4: u32,
  b_first4: u32,
  c_first4: u32,
  xbc_stride4: u32,
  step_stride: u32,
  step_column: u32,
  lanes: u32,
}

@group(0) @binding(0) var<storage, read> xbc: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read> steps: array<f32>;
@group(0) @binding(2) var<storage, read> of_heads: array<f32>;
@group(0) @binding(3) var<storage, read> spans: array<vec4<u32>>;
@group(0) @binding(4) var<storage, read_write> states: array<vec4<f32>>;
@group(0) @binding(5) var<storage, read_write> out: array<vec4<f32>>;
@group(0) @binding(6) var<uniform> params: Params;

@compute @workgroup_size(LANES)
fn main(@builtin(workgroup_id) place: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let span = spans[2u * place.z];
  let kept = spans[2u * place.z + 1u];
  if (span.y == 0u) {
    return;
  }
  let head = place.y;
  let first4 = place.x * COLUMNS4;
  let group_at = head / params.group * D4;
  var state = load_state(span.z, head, first4, lane);
  let slope = of_heads[head];
  let bias = of_heads[params.heads + head];
  let skip = of_heads[2u * params.heads + head];
  // Three parts: up to each of the two places where the state is copied, then to the end.
  var i = 0u;
  for (var part = 0u; part < 3u; part++) {
    let stop = select(select(kept.xy, kept.zw, part == 1u), span.wy, part == 2u);
    if (stop.x == NO_SLOT) {
      continue;
    }
    for (; i < stop.y; i++) {
      let row = span.x + i;
      let at = row * params.xbc_stride4;
      let step = softplus(steps[row * params.step_stride + params.step_column + head] + bias);
      let factor = exp(slope * step);
      var b4 = array<vec4<f32>, SLICES>();
      var c4 = array<vec4<f32>, SLICES>();
      for (var s = 0u; s < SLICES; s++) {
        let d4 = s * LANES + lane;
        if (d4 < D4) {
          b4[s] = xbc[at + params.b_first4 + group_at + d4];
          c4[s] = xbc[at + params.c_first4 + group_at + d4];
        }
      }
      var x: array<vec4<f32>, COLUMNS4>;
      var sums = array<vec4<f32>, SUMS>();
      for (var c = 0u; c < COLUMNS4; c++) {
        x[c] = xbc[at + head * params.values4 + min(first4 + c, params.values4 - 1u)];
        let added = x[c] * step;
        for (var s = 0u; s < SLICES; s++) {
          let first = 4u * c * SLICES + s;
          update_rows(&state, first, factor, added, b4[s]);
          sums[c] += rows_times(&state, first, c4[s]);
        }
      }
      sum_lanes(lane, &sums);
      for (var c = 0u; c < COLUMNS4; c++) {
        if (lane == 0u && first4 + c < params.values4) {
          out[(row * params.heads + head) * params.values4 + first4 + c] = fma(vec4<f32>(skip), x[c], sums[c]);
        }
      }
    }
    store_state(stop.x, head, first4, lane, &state);
  }
}
