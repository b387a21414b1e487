// out[m, n] = act(sum_k x[m, k] * W[n, k] + bias[n]) + residual[m, n] of rows first_row to m - 1, by f16 subgroup matrices of SIZE x SIZE x
// SIZE, accumulated in f32. x comes scaled to f16 from linear/half_rows.wgsl, from its row 0 on.
//
// Four subgroups of LANES compute ROWS rows by COLUMNS columns, a quarter each: SIDE_M x SIDE_N matrices. STEP quads along K of both
// operands lie in workgroup memory as f16; weights are dequantised once for all rows, and the next step is loaded before the products of
// the current one. A row's sums depend on the row alone and not on the tile; their order within a matrix is the adapter's. Reference:
// test/reference/linear.ts.
override ACTIVATION: u32;
override HAS_BIAS: bool;
override HAS_RESIDUAL: bool;

struct Params {
  m: u32,
  n: u32,
  n_weight: u32,
  k4: u32,
  out_stride: u32,
  out_column: u32,
  bias_column: u32,
  first_row: u32,
  row_quads: u32,
}

@group(0) @binding(0) var<storage, read> halves: array<vec4<u32>>;
@group(0) @binding(1) var<storage, read> scales: array<f32>;
@group(0) @binding(2) var<storage, read> weight: array<weight_t>;
@group(0) @binding(3) var<storage, read> bias: array<f32>;
@group(0) @binding(4) var<storage, read> residual: array<f32>;
@group(0) @binding(5) var<storage, read_write> out: array<f32>;
@group(0) @binding(6) var<uniform> params: Params;

alias left_t = subgroup_matrix_left<f16, SIZE, SIZE>;
alias right_t = subgroup_matrix_right<f16, SIZE, SIZE>;
alias sum_t = subgroup_matrix_result<f32, SIZE, SIZE>;

const WG = 4u * LANES;
const ROWS = 2u * SIZE * SIDE_M;
const COLUMNS = 2u * SIZE * SIDE_N;
// Pairs of quads, the unit of loads and stores, of a row or column per step; and their stride, one more, so that pairs that are read
// together lie in different banks.
const PAIRS = STEP / 2u;
const STRIDE = PAIRS + 1u;
// Pairs of x that an invocation loads per step.
const OWN_X = (ROWS * PAIRS + WG - 1u) / WG;
// Columns that an invocation loads, or invocations that share a column; pairs of each column that it loads, and words per pair.
const OWN_COLUMNS = max(1u, COLUMNS / WG);
const SHARE = max(1u, WG / COLUMNS);
const OWN_PAIRS = (PAIRS + SHARE - 1u) / SHARE;
const PAIR_WORDS = max(1u, 2u / WORD_QUADS);
// Columns of a subgroup, and the size of the sums of SIZE rows of them, in vec4s.
const WIDTH = SIZE * SIDE_N;
const STRIP = SIZE * WIDTH / 4u;
const MOST = vec4<f16>(65504.0);

// Loaded operands of a step. They are unpacked only in share_step, so that the loads stay in flight.
struct loaded_t {
  x: array<vec4<u32>, OWN_X>,
  block: array<raw_t, OWN_COLUMNS>,
  packed: array<word_t, OWN_COLUMNS * OWN_PAIRS * PAIR_WORDS>,
}

// [ROWS][STRIDE] of x and [COLUMNS][STRIDE] of weights, in f16; later the f32 sums of a strip of each subgroup. At most 16 KiB, which every
// adapter has.
var<workgroup> held: array<vec4<u32>, max((ROWS + COLUMNS) * STRIDE, 4u * STRIP)>;

// Neighbouring invocations load the pairs of a row of x, and neighbouring columns of weights.
fn load_step(first: u32, first_row: u32, first_column: u32, index: u32) -> loaded_t {
  var loaded = loaded_t();
  let rows = params.m - params.first_row;
  for (var i = 0u; i < OWN_X; i++) {
    let row = min(first_row + (index + i * WG) / PAIRS, rows - 1u);
    let pair = min(first / 2u + index % PAIRS, params.row_quads / 2u - 1u);
    loaded.x[i] = halves[row * (params.row_quads / 2u) + pair];
  }
  for (var c = 0u; c < OWN_COLUMNS; c++) {
    let column = min(first_column + index % COLUMNS + c * WG, params.n_weight - 1u);
    loaded.block[c] = raw_block(min(first, params.k4 - 1u) / BLOCK_QUADS, column);
    for (var i = 0u; i < OWN_PAIRS; i++) {
      for (var word = 0u; word < PAIR_WORDS; word++) {
        // Rows of float weights may end within a block.
        let quad = min(first + 2u * (index / COLUMNS + i * SHARE) + word, params.k4 - 1u);
        loaded.packed[(c * OWN_PAIRS + i) * PAIR_WORDS + word] = word_at(quad / BLOCK_QUADS, quad % BLOCK_QUADS / WORD_QUADS, column);
      }
    }
  }
  return loaded;
}

// Dequantises a quad of weights to f16, clamped; zeros beyond the row.
fn half_quad(block: block_t, packed: word_t, quad: u32) -> vec2<u32> {
  let inside = quad % BLOCK_QUADS;
  let w = block_quad(block, packed, inside / WORD_QUADS, inside % WORD_QUADS);
  return select(vec2<u32>(), bitcast<vec2<u32>>(clamp(vec4<f16>(w), -MOST, MOST)), quad < params.k4);
}

fn share_step(step: loaded_t, first: u32, index: u32) {
  // Copied to a var, because not every WGSL compiler can index a parameter by a variable.
  var loaded = step;
  for (var i = 0u; i < OWN_X; i++) {
    let at = index + i * WG;
    if (at < ROWS * PAIRS) {
      held[at / PAIRS * STRIDE + at % PAIRS] = loaded.x[i];
    }
  }
  for (var c = 0u; c < OWN_COLUMNS; c++) {
    let block = opened(loaded.block[c], first / BLOCK_QUADS);
    for (var i = 0u; i < OWN_PAIRS; i++) {
      let pair = index / COLUMNS + i * SHARE;
      let at = (c * OWN_PAIRS + i) * PAIR_WORDS;
      if (pair < PAIRS) {
        let low = half_quad(block, loaded.packed[at], first + 2u * pair);
        let high = half_quad(block, loaded.packed[at + PAIR_WORDS - 1u], first + 2u * pair + 1u);
        held[(ROWS + index % COLUMNS + c * WG) * STRIDE + pair] = vec4<u32>(low, high);
      }
    }
  }
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) index: u32, @builtin(subgroup_id) part: u32, @builtin(subgroup_invocation_id) lane: u32) {
  let first_row = group.x * ROWS;
  let first_column = group.y * COLUMNS;
  let part_row = part / 2u * SIZE * SIDE_M;
  let part_column = part % 2u * WIDTH;
  var sums: array<sum_t, SIDE_M * SIDE_N>;
  var loaded = load_step(0u, first_row, first_column, index);
  for (var first = 0u; first < params.row_quads; first += STEP) {
    share_step(loaded, first, index);
    workgroupBarrier();
    loaded = load_step(first + STEP, first_row, first_column, index);
    for (var pair = 0u; pair < PAIRS; pair += SIZE / 8u) {
      var left: array<left_t, SIDE_M>;
      for (var i = 0u; i < SIDE_M; i++) {
        left[i] = subgroupMatrixLoad<left_t, row_major>(&held, (part_row + i * SIZE) * STRIDE + pair, STRIDE);
      }
      for (var j = 0u; j < SIDE_N; j++) {
        let right = subgroupMatrixLoad<right_t, col_major>(&held, (ROWS + part_column + j * SIZE) * STRIDE + pair, STRIDE);
        for (var i = 0u; i < SIDE_M; i++) {
          sums[i * SIDE_N + j] = subgroupMatrixMultiplyAccumulate(left[i], right, sums[i * SIDE_N + j]);
        }
      }
    }
    workgroupBarrier();
  }
  for (var i = 0u; i < SIDE_M; i++) {
    for (var j = 0u; j < SIDE_N; j++) {
      subgroupMatrixStore<row_major>(&held, part * STRIP + j * (SIZE / 4u), sums[i * SIDE_N + j], WIDTH / 4u);
    }
    workgroupBarrier();
    for (var at = lane; at < SIZE * WIDTH; at += LANES) {
      let row = first_row + part_row + i * SIZE + at / WIDTH;
      let sum = bitcast<f32>(held[part * STRIP + at / 4u][at % 4u]);
      store(params.first_row + row, first_column + part_column + at % WIDTH, sum * scales[row]);
    }
    workgroupBarrier();
  }
}
