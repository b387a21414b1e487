// out[t, c] = x[t, c] * rms(like[t, :]) / sqrt(max(mean_c(x[t, c]^2), floor)) (+ residual[t, c]): rows of x scaled to the RMS of the rows
// of `like`; all [T, C]. One workgroup per row. Reference: test/reference/norm.ts.
override WG: u32;
override HAS_RESIDUAL: bool;

struct Params {
  rows: u32,
  columns: u32,
  floor: f32,
}

@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read> like: array<f32>;
@group(0) @binding(2) var<storage, read> residual: array<f32>;
@group(0) @binding(3) var<storage, read_write> out: array<f32>;
@group(0) @binding(4) var<uniform> params: Params;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let row = workgroup_index(group, groups);
  if (row >= params.rows) {
    return;
  }
  let base = row * params.columns;
  var own = 0.0;
  var wanted = 0.0;
  for (var c = lane; c < params.columns; c += WG) {
    let v = x[base + c];
    let w = like[base + c];
    own = fma(v, v, own);
    wanted = fma(w, w, wanted);
  }
  let mean = reduce_sum(lane, own) / f32(params.columns);
  let factor = sqrt(reduce_sum(lane, wanted) / f32(params.columns)) * inverseSqrt(max(mean, params.floor));
  for (var c = lane; c < params.columns; c += WG) {
    let matched = x[base + c] * factor;
    out[base + c] = select(matched, residual[base + c] + matched, HAS_RESIDUAL);
  }
}
