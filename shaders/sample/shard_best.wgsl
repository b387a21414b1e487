// The best token of a slice of the vocabulary, row by row, from the blocks of argmax_blocks.wgsl: out[2 b] = (value bits, token of the vocabulary), and
// local[b] = the token within the slice, 0 when there is none. Ties go to the smaller token. One invocation a row. Reference: test/reference/sample.ts.
override WG: u32;

const LOWEST = -3.4e38;
const NOBODY = 0xffffffffu;

struct Params {
  rows: u32,
  blocks: u32,
  first: u32,
}

@group(0) @binding(0) var<storage, read> best: array<vec2<u32>>;
@group(0) @binding(1) var<storage, read_write> local: array<u32>;
@group(0) @binding(2) var<storage, read_write> out: array<u32>;
@group(0) @binding(3) var<uniform> params: Params;

@compute @workgroup_size(WG)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
  let row = id.x;
  if (row >= params.rows) {
    return;
  }
  var top = LOWEST;
  var token = NOBODY;
  for (var i = 0u; i < params.blocks; i++) {
    let candidate = best[row * params.blocks + i];
    let value = bitcast<f32>(candidate.x);
    if (value > top) {
      top = value;
      token = candidate.y;
    }
  }
  local[row] = select(token, 0u, token == NOBODY);
  out[2u * row] = bitcast<u32>(top);
  out[2u * row + 1u] = select(params.first + token, NOBODY, token == NOBODY);
}
