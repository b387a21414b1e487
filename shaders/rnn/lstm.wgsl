// One LSTM layer in both directions, from a zero state (lib/lstm_step.wgsl).
//
// inputs [T, 2 * 4H] f32: W_ih x + b_ih + b_hh of the forward direction, then of the backward one. With STYLED they lack the biases, which
// lie in a row of `style` per sequence, from value `style_first` on. weight [H/4][2][4H] of four values along H. out [T, out_stride]:
// forward h, then backward h, from column 0 on. One persistent workgroup per direction of a sequence runs all its steps. Reference:
// test/reference/lstm.ts.
override WG: u32;
override HIDDEN: u32;
override STYLED: bool;
override SPANS: bool;

var<workgroup> state: array<f32, 2 * HIDDEN>;
var<workgroup> cell: array<f32, HIDDEN>;

struct Params {
  steps_unit: u32,
  steps: u32,
  out_stride: u32,
  style_first: u32,
  style_stride: u32,
}

@group(0) @binding(0) var<storage, read> inputs: array<f32>;
@group(0) @binding(1) var<storage, read> weight: array<weight_t>;
@group(0) @binding(2) var<storage, read> style: array<f32>;
@group(0) @binding(3) var<storage, read> spans: array<vec4<u32>>;
@group(0) @binding(4) var<storage, read_write> out: array<f32>;
@group(0) @binding(5) var<uniform> params: Params;

fn gate_input(at: u32, bias_at: u32) -> f32 {
  if (STYLED) {
    return inputs[at] + style[bias_at];
  }
  return inputs[at];
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let direction = group.x;
  for (var unit = lane; unit < HIDDEN; unit += WG) {
    state[unit] = 0.0;
    cell[unit] = 0.0;
  }
  let span = span_of(group.z);
  let steps = span_rows(span, params.steps_unit, params.steps);
  let bias_first = group.z * params.style_stride + params.style_first + direction * 4u * HIDDEN;
  for (var step = 0u; step < steps; step++) {
    workgroupBarrier();
    let t = span.x * params.steps_unit + select(step, steps - 1u - step, direction == 1u);
    let out_first = t * params.out_stride + direction * HIDDEN;
    lstm_step(lane, direction, (step & 1u) * HIDDEN, (t * DIRECTIONS + direction) * 4u * HIDDEN, bias_first, out_first);
  }
}
