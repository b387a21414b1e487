// out[t, i] = f(max(g[i] - cutoff, 0)) * gate_up[t, I + i], where g is the first half of row t of gate_up [T, 2 I] and cutoff = mean(g) +
// deviations * (standard deviation of g). If gates are normally distributed, a known share of them passes. out [T, I]. One workgroup per
// row. Reference: test/reference/activation.ts.
override WG: u32;
override ACTIVATION: u32;

struct Params {
  rows: u32,
  columns: u32,
  deviations: f32,
}

@group(0) @binding(0) var<storage, read> gate_up: array<f32>;
@group(0) @binding(1) var<storage, read_write> out: array<f32>;
@group(0) @binding(2) var<uniform> params: Params;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let row = workgroup_index(group, groups);
  if (row >= params.rows) {
    return;
  }
  let base = row * 2u * params.columns;
  var sum = 0.0;
  for (var i = lane; i < params.columns; i += WG) {
    sum += gate_up[base + i];
  }
  let mean = reduce_sum(lane, sum) / f32(params.columns);
  var squares = 0.0;
  for (var i = lane; i < params.columns; i += WG) {
    let d = gate_up[base + i] - mean;
    squares = fma(d, d, squares);
  }
  let cutoff = fma(sqrt(reduce_sum(lane, squares) / f32(params.columns)), params.deviations, mean);
  for (var i = lane; i < params.columns; i += WG) {
    out[row * params.columns + i] = activate(ACTIVATION, max(gate_up[base + i] - cutoff, 0.0)) * gate_up[base + params.columns + i];
  }
}
