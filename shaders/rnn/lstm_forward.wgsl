// One LSTM layer in the forward direction, from a state that is kept between dispatches (lib/lstm_step.wgsl).
//
// inputs [T, 4H] f32: W_ih x + b_ih + b_hh. weight [H/4][1][4H] of four values along H. kept [2, H] f32, read and written: h, then c. out
// [T, out_stride]: h from column 0 on. One persistent workgroup runs all steps. Reference: test/reference/lstm.ts.
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
@group(0) @binding(2) var<storage, read_write> kept: array<f32>;
@group(0) @binding(3) var<storage, read_write> out: array<f32>;
@group(0) @binding(4) var<uniform> params: Params;

fn gate_input(at: u32, bias_at: u32) -> f32 {
  return inputs[at];
}

@compute @workgroup_size(WG)
fn main(@builtin(local_invocation_index) lane: u32) {
  for (var unit = lane; unit < HIDDEN; unit += WG) {
    state[unit] = kept[unit];
    cell[unit] = kept[HIDDEN + unit];
  }
  for (var step = 0u; step < params.steps; step++) {
    workgroupBarrier();
    lstm_step(lane, 0u, (step & 1u) * HIDDEN, step * 4u * HIDDEN, 0u, step * params.out_stride);
  }
  // An invocation reads only units that it wrote itself.
  for (var unit = lane; unit < HIDDEN; unit += WG) {
    kept[unit] = state[(params.steps & 1u) * HIDDEN + unit];
    kept[HIDDEN + unit] = cell[unit];
  }
}
