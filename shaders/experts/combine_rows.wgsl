// out[t, :] = residual[t, :] + scale * sum_j share[t, j] * y[t k + j, :] over those of row t's k experts that this rank holds.
//
// y [T k, C4], shared_rows, residual and out [T, C4] of vec4; chosen and shares [T, k]. With NORMALISED the shares of all k are divided by
// their sum + floor, or by `least` where that is larger. With HAS_SCALES share[t, j] is also multiplied by scales[chosen[t, j]]; scales [experts]. With HAS_SHARED
// sigmoid(gates[t, gate_column]) * shared_rows[t, :] is added, the output of an expert that processes every row; gates [T, gate_stride].
// One invocation per four channels; grid (C4 / WG, T). Reference: test/reference/experts.ts.
override WG: u32;
override NORMALISED: bool;
override HAS_RESIDUAL: bool;
override HAS_SHARED: bool;
override HAS_SCALES: bool;

struct Params {
  c4: u32,
  k: u32,
  first_expert: u32,
  experts: u32,
  scale: f32,
  floor: f32,
  least: f32,
  gate_stride: u32,
  gate_column: u32,
}

@group(0) @binding(0) var<storage, read> y: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read> chosen: array<u32>;
@group(0) @binding(2) var<storage, read> shares: array<f32>;
@group(0) @binding(3) var<storage, read> residual: array<vec4<f32>>;
@group(0) @binding(4) var<storage, read> shared_rows: array<vec4<f32>>;
@group(0) @binding(5) var<storage, read> gates: array<f32>;
@group(0) @binding(6) var<storage, read> scales: array<f32>;
@group(0) @binding(7) var<storage, read_write> out: array<vec4<f32>>;
@group(0) @binding(8) var<uniform> params: Params;

@compute @workgroup_size(WG)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
  if (id.x >= params.c4) {
    return;
  }
  let first = id.y * params.k;
  var total = 1.0;
  if (NORMALISED) {
    total = params.floor;
    for (var j = 0u; j < params.k; j++) {
      total += shares[first + j];
    }
    total = max(total, params.least);
  }
  var sum = vec4<f32>();
  for (var j = 0u; j < params.k; j++) {
    // The rows of other ranks' experts are not written.
    if (chosen[first + j] - params.first_expert < params.experts) {
      var share = params.scale * shares[first + j] / total;
      if (HAS_SCALES) {
        share *= scales[chosen[first + j]];
      }
      sum += share * y[(first + j) * params.c4 + id.x];
    }
  }
  let at = id.y * params.c4 + id.x;
  if (HAS_SHARED) {
    sum += 1.0 / (1.0 + exp(-gates[id.y * params.gate_stride + params.gate_column])) * shared_rows[at];
  }
  if (HAS_RESIDUAL) {
    sum += residual[at];
  }
  out[at] = sum;
}
