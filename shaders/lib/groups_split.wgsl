// Products by groups of LANES neighbouring columns (a multiple of 4), with the sums of sums_split.wgsl: groups_rows.wgsl for GPUs.
// Invocations share their results through workgroup memory.
const TILE_GROUPS = TILE_N;
const GROUP_COLUMNS = LANES;

var<workgroup> made: array<f32, ROWS * COLUMN_GROUPS * GROUP_COLUMNS>;

fn make_groups(first_row: u32, index: u32) {
  workgroupBarrier();
  for (var g = 0u; g < COLUMN_GROUPS; g += TILE_GROUPS) {
    var columns = array<u32, TILE_GROUPS>();
    for (var j = 0u; j < TILE_GROUPS; j++) {
      columns[j] = min(group_column(g + j) + index % LANES, params.n_weight - 1u);
    }
    var total = sum_products(columns, first_row, index);
    for (var i = 0u; i < OWN; i++) {
      let output = index + i * WG;
      if (output < OUTPUTS) {
        made[(output / COLUMNS * COLUMN_GROUPS + g) * GROUP_COLUMNS + output % COLUMNS] = total[i];
      }
    }
  }
  workgroupBarrier();
}

fn made_quad(i: u32, group: u32, q: u32) -> vec4<f32> {
  let at = (i * COLUMN_GROUPS + group) * GROUP_COLUMNS + 4u * q;
  return vec4<f32>(made[at], made[at + 1u], made[at + 2u], made[at + 3u]);
}
