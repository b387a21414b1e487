// out[m, n] = act(sum_k x[m, k] * W[n, k] + bias[n]) + residual[m, n], for adapters whose subgroup is a SIMD register of 4.
//
// A workgroup computes ROWS (1, 4 or 16) rows of 16 columns; an invocation has 4 columns, 4 apart. Rows of x are loaded by the 4
// invocations at once, one each, and handed round (lib/quad.wgsl). Tiles are matrices in variables of their own, because private arrays
// are slow where this runs. 7x linear_broadcast.wgsl on SwiftShader (test/bench/SPEED.md). The sum over k has the same order for all ROWS.
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

// What the blocks and the words of an invocation's 4 columns hold.
struct Blocks {
  a: block_t,
  b: block_t,
  c: block_t,
  d: block_t,
}

struct Words {
  a: word_t,
  b: word_t,
  c: word_t,
  d: word_t,
}

fn next_blocks(before: Blocks, block: u32, columns: vec4<u32>) -> Blocks {
  return Blocks(
    next_block(before.a, block, columns.x),
    next_block(before.b, block, columns.y),
    next_block(before.c, block, columns.z),
    next_block(before.d, block, columns.w),
  );
}

fn words_at(block: u32, word: u32, columns: vec4<u32>) -> Words {
  return Words(word_at(block, word, columns.x), word_at(block, word, columns.y), word_at(block, word, columns.z), word_at(block, word, columns.w));
}

// W[columns, 4 k..] of an invocation: [4 columns x 4 inputs].
fn weights_of(blocks: Blocks, words: Words, word: u32, quad: u32) -> mat4x4<f32> {
  return transpose(
    mat4x4<f32>(
      block_quad(blocks.a, words.a, word, quad),
      block_quad(blocks.b, words.b, word, quad),
      block_quad(blocks.c, words.c, word, quad),
      block_quad(blocks.d, words.d, word, quad),
    ),
  );
}

fn store_row(row: u32, first_column: u32, sums: vec4<f32>) {
  for (var j = 0u; j < 4u; j++) {
    store(row, first_column + j * 4u, sums[j]);
  }
}

fn store_tile(first_row: u32, first_column: u32, sums: mat4x4<f32>) {
  for (var i = 0u; i < 4u; i++) {
    store_row(first_row + i, first_column, sums[i]);
  }
}

@compute @workgroup_size(4)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(subgroup_invocation_id) lane: u32) {
  let first_column = group.x * 16u + lane;
  let first_row = group.y * ROWS;
  let columns = min(vec4<u32>(first_column) + vec4<u32>(0u, 4u, 8u, 12u), vec4<u32>(params.n_weight - 1u));
  let count = params.k4 / BLOCK_QUADS;
  var blocks = Blocks();
  if (ROWS == 1u) {
    var sums = vec4<f32>();
    for (var block = 0u; block < count; block++) {
      blocks = next_blocks(blocks, block, columns);
      for (var word = 0u; word < BLOCK_WORDS; word++) {
        let words = words_at(block, word, columns);
        for (var quad = 0u; quad < WORD_QUADS; quad++) {
          let k = block * BLOCK_QUADS + word * WORD_QUADS + quad;
          sums += weights_of(blocks, words, word, quad) * x[first_row * params.k4 + k];
        }
      }
    }
    store_row(first_row, first_column, sums);
    return;
  }
  let rows = min(vec4<u32>(first_row + lane) + vec4<u32>(0u, 4u, 8u, 12u), vec4<u32>(params.m - 1u)) * params.k4;
  // [4 columns x 4 rows] each.
  var sums0 = mat4x4<f32>();
  var sums1 = mat4x4<f32>();
  var sums2 = mat4x4<f32>();
  var sums3 = mat4x4<f32>();
  for (var block = 0u; block < count; block++) {
    blocks = next_blocks(blocks, block, columns);
    for (var word = 0u; word < BLOCK_WORDS; word++) {
      let words = words_at(block, word, columns);
      for (var quad = 0u; quad < WORD_QUADS; quad++) {
        let k = block * BLOCK_QUADS + word * WORD_QUADS + quad;
        let weights = weights_of(blocks, words, word, quad);
        sums0 += weights * all_lanes(x[rows.x + k]);
        if (ROWS == 16u) {
          sums1 += weights * all_lanes(x[rows.y + k]);
          sums2 += weights * all_lanes(x[rows.z + k]);
          sums3 += weights * all_lanes(x[rows.w + k]);
        }
      }
    }
  }
  store_tile(first_row, first_column, sums0);
  if (ROWS == 16u) {
    store_tile(first_row + 4u, first_column, sums1);
    store_tile(first_row + 8u, first_column, sums2);
    store_tile(first_row + 12u, first_column, sums3);
  }
}
