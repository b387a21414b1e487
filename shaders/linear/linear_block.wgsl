// out[m, n] = act(sum_k x[m, k] * W[n, k] + bias[n]) + residual[m, n] of many rows on a GPU: a workgroup computes 16 TILE_M rows of 64 columns.
//
// 256 invocations bring 8 quads along K of its rows and columns into workgroup memory, weights unpacked, and each adds TILE_M x 4 products of them: rows and
// columns 16 apart, so that neighbours read neighbouring columns and the same rows. Sums run along K in order, in chunks of CHUNK_QUADS * 4, as
// linear_split.wgsl adds them: the bits do not depend on the number of rows.
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
}

@group(0) @binding(0) var<storage, read> x: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read> weight: array<weight_t>;
@group(0) @binding(2) var<storage, read> bias: array<f32>;
@group(0) @binding(3) var<storage, read> residual: array<f32>;
@group(0) @binding(4) var<storage, read_write> out: array<f32>;
@group(0) @binding(5) var<uniform> params: Params;

const SIDE = 16u;
const WG = SIDE * SIDE;
const STEP = 8u;
const TILE_N = 4u;
const ROWS = SIDE * TILE_M;
const COLUMNS = SIDE * TILE_N;

// [STEP][ROWS] and [STEP][COLUMNS]: both take 16 KiB at most, which every adapter has.
var<workgroup> xs: array<vec4<f32>, STEP * ROWS>;
var<workgroup> ws: array<vec4<f32>, STEP * COLUMNS>;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) index: u32) {
  let first_column = group.x * COLUMNS;
  let first_row = group.y * ROWS;
  let column = index % SIDE;
  let row = index / SIDE;
  // Of the quads that this invocation brings: 8 neighbours take those of a row, and 64 those of the columns.
  let x_quad = index % STEP;
  let w_column = min(first_column + index % COLUMNS, params.n_weight - 1u);
  var acc = array<array<f32, TILE_N>, TILE_M>();
  var total = array<array<f32, TILE_N>, TILE_M>();
  for (var first = 0u; first < params.k4; first += STEP) {
    for (var i = index / STEP; i < ROWS; i += WG / STEP) {
      let at = min(first_row + i, params.m - 1u) * params.k4;
      let k = first + x_quad;
      xs[x_quad * ROWS + i] = select(vec4<f32>(), x[at + min(k, params.k4 - 1u)], k < params.k4);
    }
    for (var quad = index / COLUMNS; quad < STEP; quad += WG / COLUMNS) {
      let k = min(first + quad, params.k4 - 1u);
      let block = k / BLOCK_QUADS;
      let inside = k % BLOCK_QUADS;
      let word = inside / WORD_QUADS;
      let w = block_quad(block_at(block, w_column), word_at(block, word, w_column), word, inside % WORD_QUADS);
      ws[quad * COLUMNS + index % COLUMNS] = w;
    }
    workgroupBarrier();
    for (var quad = 0u; quad < STEP; quad++) {
      var w = array<vec4<f32>, TILE_N>();
      for (var j = 0u; j < TILE_N; j++) {
        w[j] = ws[quad * COLUMNS + j * SIDE + column];
      }
      for (var i = 0u; i < TILE_M; i++) {
        let a = xs[quad * ROWS + i * SIDE + row];
        for (var j = 0u; j < TILE_N; j++) {
          acc[i][j] = fma(a.w, w[j].w, fma(a.z, w[j].z, fma(a.y, w[j].y, fma(a.x, w[j].x, acc[i][j]))));
        }
      }
    }
    workgroupBarrier();
    if ((first + STEP) % CHUNK_QUADS == 0u || first + STEP >= params.k4) {
      for (var i = 0u; i < TILE_M; i++) {
        for (var j = 0u; j < TILE_N; j++) {
          total[i][j] += acc[i][j];
          acc[i][j] = 0.0;
        }
      }
    }
  }
  for (var i = 0u; i < TILE_M; i++) {
    for (var j = 0u; j < TILE_N; j++) {
      store(first_row + i * SIDE + row, first_column + j * SIDE + column, total[i][j]);
    }
  }
}
