// normed_rows.wgsl for a workgroup that is one subgroup of 8 and computes several tiles of columns: each quad of its rows is loaded and
// normalised once, by the lane that asks for it, and held there, at most HELD quads per lane and row. Lanes add up the same squares as in
// rms_norm.wgsl, from quads that they exchange by shuffles.
const HOLDS = true;

var<private> held: array<vec4<f32>, ROWS * HELD>;

fn norm_rows(first_row: u32, lane: u32) {
  if (HAS_NORM) {
    for (var i = 0u; i < ROWS; i++) {
      let base = min(first_row + i, params.m - 1u) * params.k4;
      var sum = 0.0;
      for (var turn = 0u; turn < params.k4 / 8u; turn++) {
        let mine = x[base + turn * 8u + lane];
        held[i * HELD + turn] = mine;
        for (var q = 0u; q < 8u; q += 2u) {
          let v = subgroupShuffle(mine, q + lane / 4u)[lane % 4u];
          sum = fma(v, v, sum);
        }
      }
      let inverse = inverseSqrt(subgroupAdd(sum) / f32(params.k4 * 4u) + params.eps);
      for (var turn = 0u; turn < params.k4 / 8u; turn++) {
        held[i * HELD + turn] = held[i * HELD + turn] * inverse * norm[turn * 8u + lane];
      }
    }
  }
}

fn x_quad(i: u32, row: u32, k: u32) -> vec4<f32> {
  if (HAS_NORM) {
    return held[i * HELD + k / 8u];
  }
  return x[row * params.k4 + k];
}
