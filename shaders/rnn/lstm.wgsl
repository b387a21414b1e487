// One LSTM layer in both directions: h, c = cell(h, c, inputs[t] + W_hh h), gate order i, f, g, o.
//
// inputs [T, 2 * 4H] f32: W_ih x + b_ih + b_hh of the forward direction, then of the backward one. weight [H/4][2][4H] of 4 values along H.
// out [T, out_stride]: forward h, then backward h, from column 0 on. One persistent workgroup a direction walks through time
// with h in workgroup memory (two copies: one is read, one written, one barrier a step). An invocation owns the units lane, lane + WG, ...;
// BLOCK of them share one read of h. Reference: test/reference/lstm.ts.
override WG: u32;
override HIDDEN: u32;

struct Params {
  steps: u32,
  out_stride: u32,
}

@group(0) @binding(0) var<storage, read> inputs: array<f32>;
@group(0) @binding(1) var<storage, read> weight: array<weight_t>;
@group(0) @binding(2) var<storage, read_write> out: array<f32>;
@group(0) @binding(3) var<uniform> params: Params;

var<workgroup> state: array<f32, 2 * HIDDEN>;
var<workgroup> cell: array<f32, HIDDEN>;

fn sigmoid(x: f32) -> f32 {
  return 1.0 / (1.0 + exp(-x));
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let direction = group.x;
  let gates = 4u * HIDDEN;
  for (var unit = lane; unit < HIDDEN; unit += WG) {
    state[unit] = 0.0;
    cell[unit] = 0.0;
  }
  for (var step = 0u; step < params.steps; step++) {
    workgroupBarrier();
    let t = select(step, params.steps - 1u - step, direction == 1u);
    let read_at = (step & 1u) * HIDDEN;
    let input_first = (t * 2u + direction) * gates;
    for (var first = lane; first < HIDDEN; first += WG * BLOCK) {
      var sum: array<vec4<f32>, BLOCK>;
      for (var b = 0u; b < BLOCK; b++) {
        let at = input_first + first + b * WG;
        sum[b] = vec4<f32>(inputs[at], inputs[at + HIDDEN], inputs[at + 2u * HIDDEN], inputs[at + 3u * HIDDEN]);
      }
      for (var k = 0u; k < HIDDEN / 4u; k++) {
        let h = vec4<f32>(state[read_at + 4u * k], state[read_at + 4u * k + 1u], state[read_at + 4u * k + 2u], state[read_at + 4u * k + 3u]);
        let row = (k * 2u + direction) * gates + first;
        for (var b = 0u; b < BLOCK; b++) {
          let at = row + b * WG;
          sum[b].x += dot(h, unpack_weight(weight[at]));
          sum[b].y += dot(h, unpack_weight(weight[at + HIDDEN]));
          sum[b].z += dot(h, unpack_weight(weight[at + 2u * HIDDEN]));
          sum[b].w += dot(h, unpack_weight(weight[at + 3u * HIDDEN]));
        }
      }
      for (var b = 0u; b < BLOCK; b++) {
        let unit = first + b * WG;
        let c = sigmoid(sum[b].y) * cell[unit] + sigmoid(sum[b].x) * safe_tanh(sum[b].z);
        let h = sigmoid(sum[b].w) * safe_tanh(c);
        cell[unit] = c;
        state[HIDDEN - read_at + unit] = h;
        out[t * params.out_stride + direction * HIDDEN + unit] = h;
      }
    }
  }
}
