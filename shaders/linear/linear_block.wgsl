// out[m, n] = act(sum_k x[m, k] * W[n, k] + bias[n]) + residual[m, n] of many rows on a GPU: a tiled GEMM, SIDE TILE_M rows by SIDE TILE_N
// columns per workgroup.
//
// x [M, 4 k4] f32, weight floats or blocks (lib/weight_floats.wgsl, lib/weight_blocks.wgsl), out as lib/linear_store.wgsl stores it. SIDE x
// SIDE invocations load STEP quads along K of these rows and columns into workgroup memory, weights dequantised. Each then computes TILE_M
// x TILE_N outputs, of rows and columns SIDE apart, so that neighbours read neighbouring columns and the same rows. The next step is loaded
// before the products of the current one. Sums run along K in order, in chunks (lib/chunks.wgsl), as in linear_split.wgsl: the bits do not
// depend on the number of rows. Reference: test/reference/linear.ts.
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

const WG = SIDE * SIDE;
// Invocations with many outputs have enough work between two barriers with a step of 4; a longer one would take more registers.
const STEP = select(8u, 4u, TILE_M * TILE_N >= 32u);
const ROWS = SIDE * TILE_M;
const COLUMNS = SIDE * TILE_N;
// Quads of columns, and quads of outputs, per invocation.
const PARTS = TILE_N / 4u;
const OWN = TILE_M * PARTS;
// Quads of x, and words of weights, that an invocation loads per step.
const OWN_QUADS = (STEP * ROWS + WG - 1u) / WG;
const WORDS = COLUMNS * STEP / WORD_QUADS;
const OWN_WORDS = (WORDS + WG - 1u) / WG;

// Loaded operands of a step. They are unpacked only in share_step, so that the loads stay in flight.
struct loaded_t {
  x: array<vec4<f32>, OWN_QUADS>,
  block: array<raw_t, OWN_WORDS>,
  packed: array<word_t, OWN_WORDS>,
}

// [STEP][ROWS] and [STEP][COLUMNS]: together at most 16 KiB, which every adapter has.
var<workgroup> xs: array<vec4<f32>, STEP * ROWS>;
var<workgroup> ws: array<vec4<f32>, STEP * COLUMNS>;

// Place of a row among those of a quad, swizzled: neighbours write several quads of few rows and read one quad of many rows, both without
// bank conflicts.
fn place(row: u32, quad: u32) -> u32 {
  return row ^ (quad * (8u / STEP));
}

// STEP neighbouring invocations load the quads of a row; neighbouring invocations load words of neighbouring columns.
fn load_step(first: u32, first_row: u32, first_column: u32, index: u32) -> loaded_t {
  var loaded = loaded_t();
  for (var i = 0u; i < OWN_QUADS; i++) {
    let row = min(first_row + index / STEP + i * (WG / STEP), params.m - 1u);
    loaded.x[i] = x[row * params.k4 + min(first + index % STEP, params.k4 - 1u)];
  }
  for (var i = 0u; i < OWN_WORDS; i++) {
    let at = index + i * WG;
    if (at < WORDS) {
      let k = min(first + at / COLUMNS * WORD_QUADS, params.k4 - 1u);
      let column = min(first_column + at % COLUMNS, params.n_weight - 1u);
      loaded.block[i] = raw_block(k / BLOCK_QUADS, column);
      loaded.packed[i] = word_at(k / BLOCK_QUADS, k % BLOCK_QUADS / WORD_QUADS, column);
    }
  }
  return loaded;
}

fn share_step(step: loaded_t, first: u32, index: u32) {
  // Copied to a var, because not every WGSL compiler can index a parameter by a variable.
  var loaded = step;
  let x_quad = index % STEP;
  for (var i = 0u; i < OWN_QUADS; i++) {
    let row = index / STEP + i * (WG / STEP);
    if (row < ROWS) {
      xs[x_quad * ROWS + place(row, x_quad)] = select(vec4<f32>(), loaded.x[i], first + x_quad < params.k4);
    }
  }
  for (var i = 0u; i < OWN_WORDS; i++) {
    let at = index + i * WG;
    if (at < WORDS) {
      let first_quad = at / COLUMNS * WORD_QUADS;
      let k = min(first + first_quad, params.k4 - 1u);
      let block = opened(loaded.block[i], k / BLOCK_QUADS);
      for (var quad = 0u; quad < WORD_QUADS; quad++) {
        let w = block_quad(block, loaded.packed[i], k % BLOCK_QUADS / WORD_QUADS, quad);
        ws[(first_quad + quad) * COLUMNS + at % COLUMNS] = w;
      }
    }
  }
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) index: u32) {
  let first_row = group.x * ROWS;
  let first_column = group.y * COLUMNS;
  // 32 neighbouring invocations have 8 columns and 4 rows, so that they read the fewest distinct values.
  let column = index % 8u + index / 32u % (SIDE / 8u) * 8u;
  let row = index / 8u % 4u + index / (4u * SIDE) * 4u;
  var acc = array<vec4<f32>, OWN>();
  var total = array<vec4<f32>, OWN>();
  let chunk = chunk_quads();
  var loaded = load_step(0u, first_row, first_column, index);
  for (var first = 0u; first < params.k4; first += STEP) {
    share_step(loaded, first, index);
    workgroupBarrier();
    loaded = load_step(first + STEP, first_row, first_column, index);
    let quads = min(STEP, params.k4 - first);
    for (var quad = 0u; quad < quads; quad++) {
      // Transposed, so that column i of the matrix holds value i along K of four columns of weights.
      var w = array<mat4x4<f32>, PARTS>();
      for (var part = 0u; part < PARTS; part++) {
        let at = quad * COLUMNS + 4u * part * SIDE + column;
        w[part] = transpose(mat4x4<f32>(ws[at], ws[at + SIDE], ws[at + 2u * SIDE], ws[at + 3u * SIDE]));
      }
      let at = quad * ROWS + place(row, quad);
      for (var i = 0u; i < TILE_M; i++) {
        let a = xs[at + i * SIDE];
        for (var part = 0u; part < PARTS; part++) {
          let o = i * PARTS + part;
          acc[o] = fma(vec4<f32>(a.w), w[part][3], fma(vec4<f32>(a.z), w[part][2], fma(vec4<f32>(a.y), w[part][1], fma(vec4<f32>(a.x), w[part][0], acc[o]))));
        }
      }
    }
    workgroupBarrier();
    if ((first + STEP) % chunk == 0u || first + STEP >= params.k4) {
      for (var o = 0u; o < OWN; o++) {
        total[o] += acc[o];
        acc[o] = vec4<f32>();
      }
    }
  }
  for (var o = 0u; o < OWN; o++) {
    for (var j = 0u; j < 4u; j++) {
      store(first_row + o / PARTS * SIDE + row, first_column + (o % PARTS * 4u + j) * SIDE + column, total[o][j]);
    }
  }
}
