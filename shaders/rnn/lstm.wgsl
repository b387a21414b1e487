// One LSTM layer in both directions from a zero state (lib/lstm_step.wgsl).
//
// inputs [T, 2 * 4H] f32: W_ih x + b_ih + b_hh of the forward direction, then of the backward one. weight [H/4][2][4H] of 4 values along H.
// out [T, out_stride]: forward h, then backward h, from column 0 on. One persistent workgroup a direction walks through time.
// Reference: test/reference/lstm.ts.
override WG: u32;
override HIDDEN: u32;

var<workgroup> state: array<f32, 2 * HIDDEN>;
var<workgroup> cell: array<f32, HIDDEN>;

struct Params {
  steps: u32,
  out_stride: u32,
}

@group(0) @binding(0) var<storage, read> inputs: array<f32>;
@group(0) @binding(1) var<storage, read> weight: array<weight_t>;
@group(0) @binding(2) var<storage, read_write> out: array<f32>;
@group(0) @binding(3) var<uniform> params: Params;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let direction = group.x;
  for (var unit = lane; unit < HIDDEN; unit += WG) {
    state[unit] = 0.0;
    cell[unit] = 0.0;
  }
  for (var step = 0u; step < params.steps; step++) {
    workgroupBarrier();
    let t = select(step, params.steps - 1u - step, direction == 1u);
    let out_first = t * params.out_stride + direction * HIDDEN;
    lstm_step(lane, direction, (step & 1u) * HIDDEN, (t * DIRECTIONS + direction) * 4u * HIDDEN, out_first);
  }
}
