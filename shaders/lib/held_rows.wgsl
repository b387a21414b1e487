// Rows and sums of linear_normed.wgsl: a workgroup's rows are normalised and held in private memory, and multiplied with two groups of 32
// columns, which begin where the kernel's group_column says.
const TILE_N = 4u;
const BLOCK_ROWS = ROW_BLOCKS * LANES;

// By block of rows and component. Constant outer indices let compilers split it into small arrays; zeroing an array, as Dawn does, takes
// them time that grows with the square of its length.
var<private> held: array<array<array<f32, HELD>, 4>, ROW_BLOCKS>;
// Sums of each group, by row and column, in memory for the loop that stores them (linear_broadcast.wgsl).
const MADE_GROUP = 16u * TILE_N;
var<private> made: array<array<f32, MADE_GROUP>, 2>;

// Loads and normalises the rows. Squares are added by the same lanes and in the same order as in rms_norm.wgsl.
fn hold_rows(first_row: u32, lane: u32) {
  for (var r = 0u; r < ROW_BLOCKS; r++) {
    let base = min(first_row + r * LANES + lane, params.m - 1u) * params.k4;
    var inverse = 1.0;
    if (HAS_NORM) {
      var even = vec4<f32>();
      var odd = vec4<f32>();
      for (var k = 0u; k < params.k4; k++) {
        let quad = x[base + k];
        let sum = fma(quad, quad, select(odd, even, k % 2u == 0u));
        even = select(even, sum, k % 2u == 0u);
        odd = select(odd, sum, k % 2u == 1u);
      }
      // k4 is not less than LANES; the min only keeps compilers from unrolling.
      for (var i = 0u; i < min(LANES, params.k4); i++) {
        let mine = select(subgroupShuffle(even, i), subgroupShuffle(odd, i), lane >= 4u)[lane % 4u];
        let all = inverseSqrt(reduce_sum(lane, mine) / f32(params.k4 * 4u) + params.eps);
        inverse = select(inverse, all, lane == i);
      }
    }
    var scales = vec4<f32>();
    for (var k = 0u; k < params.k4; k++) {
      var quad = x[base + k];
      if (HAS_NORM) {
        if (k % LANES == 0u) {
          scales = norm[k + lane];
        }
        quad = quad * inverse * subgroupShuffle(scales, k % LANES);
      }
      held[r][0][k] = quad.x;
      held[r][1][k] = quad.y;
      held[r][2][k] = quad.z;
      held[r][3][k] = quad.w;
    }
  }
}

fn make_groups(lane: u32) {
  for (var g = 0u; g < 2u; g++) {
    let columns = min(group_column(g) + 4u * lane, params.n_weight - 4u) / 4u;
    var acc = array<array<f32, TILE_N>, BLOCK_ROWS>();
    var blocks = blocks_t();
    for (var b = 0u; b < params.k4 / BLOCK_QUADS; b++) {
      blocks = next_blocks(blocks, b, columns);
      for (var word = 0u; word < BLOCK_WORDS; word++) {
        let packed = words_at(b, word, columns);
        for (var quad = 0u; quad < WORD_QUADS; quad++) {
          let k = b * BLOCK_QUADS + word * WORD_QUADS + quad;
          var w: array<vec4<f32>, TILE_N>;
          for (var j = 0u; j < TILE_N; j++) {
            w[j] = block_quad(blocks[j], packed[j], word, quad);
          }
          for (var r = 0u; r < ROW_BLOCKS; r++) {
            let mine = vec4<f32>(held[r][0][k], held[r][1][k], held[r][2][k], held[r][3][k]);
            for (var i = 0u; i < LANES; i++) {
              let a = subgroupShuffle(mine, i);
              for (var j = 0u; j < TILE_N; j++) {
                let sum = acc[r * LANES + i][j];
                acc[r * LANES + i][j] = fma(a.w, w[j].w, fma(a.z, w[j].z, fma(a.y, w[j].y, fma(a.x, w[j].x, sum))));
              }
            }
          }
        }
      }
    }
    for (var i = 0u; i < BLOCK_ROWS; i++) {
      for (var j = 0u; j < TILE_N; j++) {
        if (g == 0u) {
          made[0][i * TILE_N + j] = acc[i][j];
        } else {
          made[1][i * TILE_N + j] = acc[i][j];
        }
      }
    }
  }
}
