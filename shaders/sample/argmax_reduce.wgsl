// sampled[b] = token of the best block of row b (argmax_blocks.wgsl); last_tokens[slot of b] gets it too, where the next step's
// embedding reads it. Ties go to the smaller token; a row of NaN gives token 0. One invocation a row. Reference: test/reference/sample.ts.
override WG: u32;

const LOWEST = -3.4e38;
const NOBODY = 0xffffffffu;

struct Params {
  rows: u32,
  blocks: u32,
}

@group(0) @binding(0) var<storage, read> best: array<vec2<u32>>;
@group(0) @binding(1) var<storage, read> rows: array<SamplingRow>;
@group(0) @binding(2) var<storage, read_write> sampled: array<u32>;
@group(0) @binding(3) var<storage, read_write> last_tokens: array<u32>;
@group(0) @binding(4) var<uniform> params: Params;

@compute @workgroup_size(WG)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
  if (id.x >= params.rows) {
    return;
  }
  var top = LOWEST;
  var token = NOBODY;
  for (var i = 0u; i < params.blocks; i++) {
    let candidate = best[id.x * params.blocks + i];
    let value = bitcast<f32>(candidate.x);
    if (value > top) {
      top = value;
      token = candidate.y;
    }
  }
  token = select(token, 0u, token == NOBODY);
  sampled[id.x] = token;
  last_tokens[rows[id.x].slot] = token;
}
