// Products by groups of 32 neighbouring columns, with the sums of sums_rows.wgsl, for kernels that process their results further. The
// kernel sets COLUMN_GROUPS, the groups per workgroup, and group_column, where each begins. An invocation keeps its own quads, so no
// barrier is needed: with a barrier anywhere in a kernel lavapipe keeps the accumulators of the inner loop in memory, which takes twice as
// long.
const WG = LANES;
const TILE_GROUPS = TILE_N / 4u;
const GROUP_COLUMNS = 32u;

var<private> made: array<vec4<f32>, ROWS * COLUMN_GROUPS>;

fn make_groups(first_row: u32, lane: u32) {
  for (var g = 0u; g < COLUMN_GROUPS; g += TILE_GROUPS) {
    var columns = array<u32, TILE_GROUPS>();
    for (var j = 0u; j < TILE_GROUPS; j++) {
      columns[j] = min(group_column(g + j) + 4u * lane, params.n_weight - 4u) / 4u;
    }
    var sums = sum_products(columns, first_row, lane);
    for (var i = 0u; i < ROWS; i++) {
      for (var j = 0u; j < TILE_GROUPS; j++) {
        made[i * COLUMN_GROUPS + g + j] = vec4<f32>(sums[i][4u * j], sums[i][4u * j + 1u], sums[i][4u * j + 2u], sums[i][4u * j + 3u]);
      }
    }
  }
}

// Quad q (0 to 7) of a group; only invocations with lane = q modulo LANES may ask for it.
fn made_quad(i: u32, group: u32, q: u32) -> vec4<f32> {
  return made[i * COLUMN_GROUPS + group];
}
