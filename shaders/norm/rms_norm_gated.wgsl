// out[t, h, c] = x[t, h, c] / sqrt(mean_c(x[t, h, c]^2) + eps) * weight[h * weight_stride + c] * silu(gate[t, gate_column + h * columns + c]);
// with GATE_FIRST (Mamba 2) x is multiplied by silu(gate) instead, and the product is normed. x and out [T, heads, columns], gate [T,
// gate_stride]. One workgroup per head of a row. Reference: test/reference/recurrent.ts.
override WG: u32;
override GATE_FIRST: bool;

struct Params {
  rows: u32,
  heads: u32,
  columns: u32,
  weight_stride: u32,
  gate_stride: u32,
  gate_column: u32,
  eps: f32,
}

@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read> weight: array<f32>;
@group(0) @binding(2) var<storage, read> gate: array<f32>;
@group(0) @binding(3) var<storage, read_write> out: array<f32>;
@group(0) @binding(4) var<uniform> params: Params;

fn silu(x: f32) -> f32 {
  return x / (1.0 + exp(-x));
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let index = workgroup_index(group, groups);
  if (index >= params.rows * params.heads) {
    return;
  }
  let base = index * params.columns;
  let gate_base = index / params.heads * params.gate_stride + params.gate_column + index % params.heads * params.columns;
  let weight_base = index % params.heads * params.weight_stride;
  var sum = 0.0;
  for (var c = lane; c < params.columns; c += WG) {
    var v = x[base + c];
    if (GATE_FIRST) {
      v *= silu(gate[gate_base + c]);
    }
    sum = fma(v, v, sum);
  }
  let scale = inverseSqrt(reduce_sum(lane, sum) / f32(params.columns) + params.eps);
  for (var c = lane; c < params.columns; c += WG) {
    out[base + c] = x[base + c] * scale * weight[weight_base + c] * silu(gate[gate_base + c]);
  }
}
