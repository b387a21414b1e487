// Rows of a matrix of floats, as a file stores them -> packed[k / 4][out_column + row][k % 4] in f32, or in f16 rounded to nearest even, as
// packLinear lays weights out. raw: [rows, width] (lib/stored_floats.wgsl), of which columns [column, column + columns) are taken. flags[tensor] becomes 1
// when a value is not finite or too large for f16. An invocation takes a row and QUADS times four columns of it.
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
  padded: u32,
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
  var bad = false;
  for (var i = 0u; i < QUADS; i++) {
    let column = (group.y * QUADS + i) * 4u;
    if (column >= params.columns) {
      break;
    }
    let values = quad_at(first + column, params.columns - column);
    bad = bad || is_bad(values);
    store_quad(column / 4u * params.padded + params.out_column + row, values);
  }
  if (bad) {
    flags[params.tensor] = 1u;
  }
}
