// out[2 b], out[2 b + 1] = (value bits, token of the vocabulary) of the best token of row b in a slice of the vocabulary, from the blocks
// of argmax_blocks.wgsl; local[b] = the token within the slice, 0 when there is none. Ties go to the smaller token. best [B][blocks]. One
// workgroup per row. Reference: test/reference/sample.ts.
override WG: u32;

const LOWEST = -3.4e38;
const NOBODY = 0xffffffffu;

struct Params {
  blocks: u32,
  first: u32,
}

@group(0) @binding(0) var<storage, read> best: array<vec2<u32>>;
@group(0) @binding(1) var<storage, read_write> local: array<u32>;
@group(0) @binding(2) var<storage, read_write> out: array<u32>;
@group(0) @binding(3) var<uniform> params: Params;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let row = group.x;
  var mine = vec2<u32>(bitcast<u32>(LOWEST), NOBODY);
  for (var i = lane; i < params.blocks; i += WG) {
    mine = better(mine, best[row * params.blocks + i]);
  }
  let chosen = best_of_lanes(lane, mine);
  if (lane == 0u) {
    local[row] = select(chosen.y, 0u, chosen.y == NOBODY);
    out[2u * row] = chosen.x;
    out[2u * row + 1u] = select(params.first + chosen.y, NOBODY, chosen.y == NOBODY);
  }
}
