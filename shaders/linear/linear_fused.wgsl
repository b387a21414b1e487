// out[m, n] = sum_k y[m, k] * W[n, k] + bias[n] of a few rows, with y = x / rms(x) * norm (HAS_NORM) or y = x. With GATED W stacks gates
// and ups of n / 2 rows each, and out[m, i] = act(sum_k y[m, k] * gates[i, k]) * sum_k y[m, k] * ups[i, k].
//
// rms_norm.wgsl, a product and gate_mul.wgsl in one dispatch, with the bits of the three. x [M, 4 k4], norm [K], out [M, out_stride] from
// out_column on. Every workgroup normalises its ROWS rows again, and computes `tiles` tiles of COLUMN_GROUPS groups of GROUP_COLUMNS
// columns (lib/groups_rows.wgsl, lib/groups_split.wgsl): neighbouring groups, or as many groups of gates as of their ups.
// Reference: test/reference/linear.ts, norm.ts, activation.ts.
override ACTIVATION: u32;
override HAS_BIAS: bool;
override HAS_NORM: bool;
override GATED: bool;

struct Params {
  m: u32,
  n: u32,
  n_weight: u32,
  k4: u32,
  out_stride: u32,
  out_column: u32,
  bias_column: u32,
  tiles: u32,
  eps: f32,
}

@group(0) @binding(0) var<storage, read> x: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read> norm: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read> weight: array<weight_t>;
@group(0) @binding(3) var<storage, read> bias: array<f32>;
@group(0) @binding(4) var<storage, read_write> out: array<f32>;
@group(0) @binding(5) var<uniform> params: Params;

// With GATED the number of groups that are gates; the others are their ups.
const GATES = COLUMN_GROUPS / 2u;

// First column of the first group of the workgroup's current tile.
var<private> first: u32;

fn group_column(group: u32) -> u32 {
  if (GATED) {
    return first + group % GATES * GROUP_COLUMNS + group / GATES * (params.n / 2u);
  }
  return first + group * GROUP_COLUMNS;
}

fn store_quad(row: u32, n: u32, columns: u32, sums: vec4<f32>) {
  for (var j = 0u; j < 4u; j++) {
    if (n + j < columns) {
      var y = sums[j];
      if (HAS_BIAS) {
        y += bias[params.bias_column + n + j];
      }
      out[row * params.out_stride + params.out_column + n + j] = y;
    }
  }
}

fn gate4(gates: vec4<f32>, ups: vec4<f32>) -> vec4<f32> {
  var y: vec4<f32>;
  for (var j = 0u; j < 4u; j++) {
    y[j] = activate(ACTIVATION, gates[j]) * ups[j];
  }
  return y;
}

// Stores row i of a group of gates times their ups, or of two groups.
fn store_group(row: u32, i: u32, group: u32, lane: u32) {
  let n = first + GROUP_COLUMNS * group + 4u * lane;
  let low = made_quad(i, group, lane);
  let high = made_quad(i, group + GATES, lane);
  if (GATED) {
    store_quad(row, n, params.n / 2u, gate4(low, high));
  } else {
    store_quad(row, n, params.n, low);
    store_quad(row, n + GROUP_COLUMNS * GATES, params.n, high);
  }
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let first_row = group.y * ROWS;
  norm_rows(first_row, lane);
  let width = GROUP_COLUMNS * select(COLUMN_GROUPS, GATES, GATED);
  for (var t = 0u; t < params.tiles; t++) {
    first = (group.x * params.tiles + t) * width;
    make_groups(first_row, lane);
    for (var i = 0u; i < ROWS; i++) {
      if (lane < GROUP_COLUMNS / 4u && first_row + i < params.m) {
        store_group(first_row + i, i, 0u, lane);
        if (GATES == 2u) {
          store_group(first_row + i, i, 1u, lane);
        }
      }
    }
  }
}
