// out[m, n] = sum_k y[m, k] * W[n, k] + bias[n] with y = x / rms(x) * norm (HAS_NORM) or y = x: linear_fused.wgsl for many rows, on
// adapters whose subgroup is a SIMD register of 8. With params.gated W stacks gates and ups of n / 2 rows each, and out[m, i] = act(sum_k
// y[m, k] * gates[i, k]) * sum_k y[m, k] * ups[i, k].
//
// rms_norm.wgsl, a product and gate_mul.wgsl in one dispatch, with the bits of the three. A workgroup has ROW_BLOCKS x LANES rows, and
// computes `tiles` tiles of two groups of 32 columns: neighbours, or gates and their ups. `gated` is no override, because a model has both
// and each pipeline is slow to compile. As in linear_broadcast.wgsl, but rows are loaded and normalised once and held (lane i has the rows
// that are i modulo LANES, at most HELD quads of each; lib/held_rows.wgsl): a buffer load is several times the instructions of a read from
// there. K is a multiple of 32. Reference: test/reference/linear.ts, norm.ts, activation.ts.
override ACTIVATION: u32;
override HAS_BIAS: bool;
override HAS_NORM: bool;

struct Params {
  m: u32,
  n: u32,
  n_weight: u32,
  k4: u32,
  out_stride: u32,
  out_column: u32,
  bias_column: u32,
  tiles: u32,
  gated: u32,
  eps: f32,
}

@group(0) @binding(0) var<storage, read> x: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read> norm: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read> weight: array<weight_t>;
@group(0) @binding(3) var<storage, read> bias: array<f32>;
@group(0) @binding(4) var<storage, read_write> out: array<f32>;
@group(0) @binding(5) var<uniform> params: Params;

// First column of the first group of the workgroup's current tile.
var<private> first: u32;

fn group_column(group: u32) -> u32 {
  return first + group * select(32u, params.n / 2u, params.gated == 1u);
}

fn store(row: u32, n: u32, columns: u32, sum: f32) {
  if (n < columns) {
    var y = sum;
    if (HAS_BIAS) {
      y += bias[params.bias_column + n];
    }
    out[row * params.out_stride + params.out_column + n] = y;
  }
}

@compute @workgroup_size(LANES)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(subgroup_invocation_id) lane: u32) {
  let first_row = group.y * BLOCK_ROWS;
  let gated = params.gated == 1u;
  let columns = select(params.n, params.n / 2u, gated);
  let width = select(64u, 32u, gated);
  hold_rows(first_row, lane);
  for (var t = 0u; t < params.tiles; t++) {
    let own = (group.x * params.tiles + t) * width;
    if (own >= columns) {
      break;
    }
    first = own;
    make_groups(lane);
    for (var i = 0u; i < TILE_N * min(BLOCK_ROWS, params.m - first_row); i++) {
      let row = first_row + i / TILE_N;
      let n = own + TILE_N * lane + i % TILE_N;
      let low = made[0][i];
      let high = made[1][i];
      // One store for both cases, because a store compiles to much code.
      var sum = low;
      if (gated) {
        sum = activate(ACTIVATION, low) * high;
      }
      store(row, n, columns, sum);
      if (!gated) {
        store(row, n + 32u, columns, high);
      }
    }
  }
}
