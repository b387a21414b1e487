// sampled[b] = last_tokens[slot of b] = token of the best block of row b (argmax_blocks.wgsl); the embedding of the next step reads
// last_tokens. Ties go to the smaller token; a row of NaN gives token 0. best [B][blocks]. One workgroup per row. Reference:
// test/reference/sample.ts.
override WG: u32;

const LOWEST = -3.4e38;
const NOBODY = 0xffffffffu;

struct Params {
  blocks: u32,
}

@group(0) @binding(0) var<storage, read> best: array<vec2<u32>>;
@group(0) @binding(1) var<storage, read> rows: array<SamplingRow>;
@group(0) @binding(2) var<storage, read_write> sampled: array<u32>;
@group(0) @binding(3) var<storage, read_write> last_tokens: array<u32>;
@group(0) @binding(4) var<uniform> params: Params;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  var mine = vec2<u32>(bitcast<u32>(LOWEST), NOBODY);
  for (var i = lane; i < params.blocks; i += WG) {
    mine = better(mine, best[group.x * params.blocks + i]);
  }
  let token = best_of_lanes(lane, mine).y;
  if (lane == 0u) {
    sampled[group.x] = select(token, 0u, token == NOBODY);
    last_tokens[rows[group.x].slot] = select(token, 0u, token == NOBODY);
  }
}
