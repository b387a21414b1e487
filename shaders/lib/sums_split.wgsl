// Sums over k of x[first_row + i, k] * W[n, k] of ROWS rows and COLUMNS columns on a GPU, by split-K within a workgroup: SLICES groups of
// LANES invocations share the columns and take turns with the chunks of K (chunks.wgsl).
//
// With few rows every weight is read once and little is done with it, so speed depends on the number of loads in flight. Where N is small,
// one group that walks all of K would leave most of a GPU idle. Each chunk is summed in order, and the chunks are added in order, as in
// linear_block.wgsl: the bits do not depend on the number of rows. The kernel's x_quad(i, row, k) gives quad k of the i-th row.
const COLUMNS = LANES * TILE_N;
const OUTPUTS = ROWS * COLUMNS;
const WG = LANES * SLICES;
// Outputs per invocation, whose slices it adds up.
const OWN = (OUTPUTS + WG - 1u) / WG;

var<workgroup> sums: array<f32, SLICES * OUTPUTS>;

// Returns the sums of outputs index + j WG of [ROWS][COLUMNS]. `of_column`: the TILE_N columns that the invocation multiplies, LANES apart
// in the tile.
fn sum_products(of_column: array<u32, TILE_N>, first_row: u32, index: u32) -> array<f32, OWN> {
  // Copied to a var, because not every WGSL compiler can index a parameter by a variable.
  var column = of_column;
  let lane = index % LANES;
  let slice = index / LANES;
  var row: array<u32, ROWS>;
  for (var i = 0u; i < ROWS; i++) {
    row[i] = min(first_row + i, params.m - 1u);
  }
  let blocks = params.k4 / BLOCK_QUADS;
  let chunk_blocks = chunk_quads() / BLOCK_QUADS;
  let chunks = (blocks + chunk_blocks - 1u) / chunk_blocks;
  let turns = (chunks + SLICES - 1u) / SLICES;
  var total = array<f32, OWN>();
  for (var round = 0u; round < turns; round++) {
    let turn = round * SLICES;
    // Initialised explicitly: in a loop on lavapipe, a bare declaration keeps the values of the previous iteration.
    var acc = array<array<f32, TILE_N>, ROWS>();
    let first = (turn + slice) * chunk_blocks;
    let last = min(first + chunk_blocks, blocks);
    var block = array<block_t, TILE_N>();
    for (var b = first; b < last; b++) {
      for (var j = 0u; j < TILE_N; j++) {
        if (b == first) {
          block[j] = block_at(b, column[j]);
        } else {
          block[j] = next_block(block[j], b, column[j]);
        }
      }
      var packed: array<array<word_t, TILE_N>, BLOCK_WORDS>;
      for (var word = 0u; word < BLOCK_WORDS; word++) {
        for (var j = 0u; j < TILE_N; j++) {
          packed[word][j] = word_at(b, word, column[j]);
        }
      }
      for (var word = 0u; word < BLOCK_WORDS; word++) {
        for (var quad = 0u; quad < WORD_QUADS; quad++) {
          let k = b * BLOCK_QUADS + word * WORD_QUADS + quad;
          var w: array<vec4<f32>, TILE_N>;
          for (var j = 0u; j < TILE_N; j++) {
            w[j] = block_quad(block[j], packed[word][j], word, quad);
          }
          for (var i = 0u; i < ROWS; i++) {
            let a = x_quad(i, row[i], k);
            for (var j = 0u; j < TILE_N; j++) {
              acc[i][j] = fma(a.w, w[j].w, fma(a.z, w[j].z, fma(a.y, w[j].y, fma(a.x, w[j].x, acc[i][j]))));
            }
          }
        }
      }
    }
    for (var i = 0u; i < ROWS; i++) {
      for (var j = 0u; j < TILE_N; j++) {
        sums[slice * OUTPUTS + i * COLUMNS + j * LANES + lane] = acc[i][j];
      }
    }
    workgroupBarrier();
    for (var i = 0u; i < OWN; i++) {
      let output = index + i * WG;
      if (output < OUTPUTS) {
        // Eight loads in flight. Slices without a chunk hold zeros, which change no sum.
        for (var s = 0u; s < min(SLICES, chunks - turn); s += 8u) {
          for (var e = 0u; e < 8u; e++) {
            total[i] += sums[(s + e) * OUTPUTS + output];
          }
        }
      }
    }
    workgroupBarrier();
  }
  return total;
}
