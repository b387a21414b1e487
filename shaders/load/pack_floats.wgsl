// packed [groups][k / 4][beside][k % 4] = rows of a float matrix, as a file stores them, as f32, or with HALF as f16 rounded to nearest
// even, from column out_column on. Rows of the matrix are columns of the product, and `beside` of them lie next to each other: all of them
// in the layout of packLinear, or groups of columns. raw: [rows, width] (lib/stored_floats.wgsl), of which columns [column, column +
// columns) are taken. flags[tensor] becomes 1 when a value is not finite or too large for f16. One invocation per row and QUADS quads of
// columns.
override WG: u32;
override SOURCE: u32;
override HALF: bool;
override QUADS: u32;
override PAIRS: bool;

struct Params {
  rows: u32,
  first_row: u32,
  width: u32,
  column: u32,
  columns: u32,
  out_column: u32,
  beside: u32,
  tensor: u32,
}

@group(0) @binding(0) var<storage, read> raw: array<u32>;
@group(0) @binding(1) var<storage, read_write> packed: array<u32>;
@group(0) @binding(2) var<storage, read_write> flags: array<u32>;
@group(0) @binding(3) var<uniform> params: Params;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let row = group.x * WG + lane;
  if (row >= params.rows) {
    return;
  }
  let first = (params.first_row + row) * params.width + params.column;
  let at = params.out_column + row;
  let group_quad = at / params.beside * ((params.columns + 3u) / 4u);
  var bad = false;
  // The end is no constant, so that the loop is not unrolled: unrolled it takes ten times as long to compile.
  let end = min((group.y + 1u) * QUADS, (params.columns + 3u) / 4u);
  for (var quad = group.y * QUADS; quad < end; quad++) {
    let column = quad * 4u;
    let values = quad_at(first + column, params.columns - column);
    bad = bad || is_bad(values);
    store_quad((group_quad + quad) * params.beside + at % params.beside, values);
  }
  if (bad) {
    flags[params.tensor] = 1u;
  }
}
