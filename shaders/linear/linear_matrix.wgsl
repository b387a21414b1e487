// out[m, n] = act(sum_k x[m, k] * W[n, k] + bias[n]) + residual[m, n] of rows first_row to m - 1 by subgroup matrices of halves, SIZE x SIZE x SIZE, whose
// products are added up in f32. x comes as linear/half_rows.wgsl leaves it, from row 0 on.
//
// Four subgroups of LANES make TILE rows by TILE columns, a quarter each: SIDE x SIDE matrices. A block of 32 weights along K of each column is unpacked into
// workgroup memory, as halves. A row's sums depend on the row alone; their order within a matrix is the adapter's. Reference: test/reference/linear.ts.
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

@group(0) @binding(0) var<storage, read> halves: array<vec4<f16>>;
@group(0) @binding(1) var<storage, read> scales: array<f32>;
@group(0) @binding(2) var<storage, read> weight: array<weight_t>;
@group(0) @binding(3) var<storage, read> bias: array<f32>;
@group(0) @binding(4) var<storage, read> residual: array<f32>;
@group(0) @binding(5) var<storage, read_write> out: array<f32>;
@group(0) @binding(6) var<uniform> params: Params;

alias left_t = subgroup_matrix_left<f16, SIZE, SIZE>;
alias right_t = subgroup_matrix_right<f16, SIZE, SIZE>;
alias sum_t = subgroup_matrix_result<f32, SIZE, SIZE>;

const PART = SIZE * SIDE;
const TILE = 2u * PART;
const WG = 4u * LANES;
// Invocations that unpack a column.
const SHARE = max(1u, WG / TILE);
// Quads of a column, and as many more as put the columns that are read together into different banks.
const STRIDE = 10u;
const MOST = vec4<f32>(65504.0);

var<workgroup> ws: array<vec4<f16>, STRIDE * TILE>;
var<workgroup> made: array<f32, 4u * SIZE * SIZE>;

fn unpack_column(b: u32, c: u32, first_column: u32, first_word: u32) {
  let column = min(first_column + c, params.n_weight - 1u);
  let block = block_at(b, column);
  for (var word = first_word; word < BLOCK_WORDS; word += SHARE) {
    // Rows of floats may end within a block.
    let k = min(b * BLOCK_QUADS + word * WORD_QUADS, params.k4 - 1u);
    let packed = word_at(k / BLOCK_QUADS, k % BLOCK_QUADS / WORD_QUADS, column);
    for (var quad = 0u; quad < WORD_QUADS; quad++) {
      let at = word * WORD_QUADS + quad;
      let w = clamp(block_quad(block, packed, word, quad), -MOST, MOST);
      ws[c * STRIDE + at] = vec4<f16>(select(vec4<f32>(), w, b * BLOCK_QUADS + at < params.k4));
    }
  }
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) index: u32, @builtin(subgroup_id) part: u32, @builtin(subgroup_invocation_id) lane: u32) {
  let first_row = group.y * TILE + part / 2u * PART;
  let first_column = part % 2u * PART;
  var sums: array<sum_t, SIDE * SIDE>;
  for (var b = 0u; b < params.row_quads / BLOCK_QUADS; b++) {
    for (var c = index % TILE; c < TILE; c += WG) {
      unpack_column(b, c, group.x * TILE, index / TILE);
    }
    workgroupBarrier();
    for (var k = 0u; k < BLOCK_QUADS; k += SIZE / 4u) {
      var left: array<left_t, SIDE>;
      for (var i = 0u; i < SIDE; i++) {
        left[i] = subgroupMatrixLoad<left_t, row_major>(&halves, (first_row + i * SIZE) * params.row_quads + b * BLOCK_QUADS + k, params.row_quads);
      }
      for (var j = 0u; j < SIDE; j++) {
        let right = subgroupMatrixLoad<right_t, col_major>(&ws, (first_column + j * SIZE) * STRIDE + k, STRIDE);
        for (var i = 0u; i < SIDE; i++) {
          sums[i * SIDE + j] = subgroupMatrixMultiplyAccumulate(left[i], right, sums[i * SIDE + j]);
        }
      }
    }
    workgroupBarrier();
  }
  for (var i = 0u; i < SIDE; i++) {
    for (var j = 0u; j < SIDE; j++) {
      subgroupMatrixStore<row_major>(&made, part * SIZE * SIZE, sums[i * SIDE + j], SIZE);
      workgroupBarrier();
      for (var at = lane; at < SIZE * SIZE; at += LANES) {
        let row = first_row + i * SIZE + at / SIZE;
        let n = group.x * TILE + first_column + j * SIZE + at % SIZE;
        store(params.first_row + row, n, made[part * SIZE * SIZE + at] * scales[row]);
      }
      workgroupBarrier();
    }
  }
}
