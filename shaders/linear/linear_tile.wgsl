// out[m, n] = act(sum_k x[m, k] * W[n, k] + bias[n]) + residual[m, n]: the kernel that runs on every adapter.
//
// x [M, K] f32, K a multiple of 4; weight floats (lib/weight_floats.wgsl) or blocks (lib/weight_blocks.wgsl), N a multiple of 8; out [M,
// out_stride] from out_column on. A workgroup computes TILE_M rows x (WG * TILE_N) columns: each invocation holds a TILE_M x TILE_N
// register tile whose columns lie WG apart, so that neighbouring invocations read neighbouring weights. K runs in order, so a row's result
// does not depend on M. No workgroup memory: on software adapters it costs more than it saves. Reference: test/reference/linear.ts.
override WG: u32;
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

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let first_column = group.x * WG * TILE_N + lane;
  let first_row = group.y * TILE_M;
  var column: array<u32, TILE_N>;
  for (var j = 0u; j < TILE_N; j++) {
    column[j] = min(first_column + j * WG, params.n_weight - 1u);
  }
  var row: array<u32, TILE_M>;
  for (var i = 0u; i < TILE_M; i++) {
    row[i] = min(first_row + i, params.m - 1u) * params.k4;
  }
  var acc: array<array<f32, TILE_N>, TILE_M>;
  var block = array<block_t, TILE_N>();
  for (var b = 0u; b < params.k4 / BLOCK_QUADS; b++) {
    for (var j = 0u; j < TILE_N; j++) {
      block[j] = next_block(block[j], b, column[j]);
    }
    for (var word = 0u; word < BLOCK_WORDS; word++) {
      var packed: array<word_t, TILE_N>;
      for (var j = 0u; j < TILE_N; j++) {
        packed[j] = word_at(b, word, column[j]);
      }
      for (var quad = 0u; quad < WORD_QUADS; quad++) {
        let k = b * BLOCK_QUADS + word * WORD_QUADS + quad;
        var w: array<vec4<f32>, TILE_N>;
        for (var j = 0u; j < TILE_N; j++) {
          w[j] = block_quad(block[j], packed[j], word, quad);
        }
        for (var i = 0u; i < TILE_M; i++) {
          let a = x[row[i] + k];
          for (var j = 0u; j < TILE_N; j++) {
            acc[i][j] = fma(a.w, w[j].w, fma(a.z, w[j].z, fma(a.y, w[j].y, fma(a.x, w[j].x, acc[i][j]))));
          }
        }
      }
    }
  }
  for (var i = 0u; i < TILE_M; i++) {
    for (var j = 0u; j < TILE_N; j++) {
      store(first_row + i, first_column + j * WG, acc[i][j]);
    }
  }
}
