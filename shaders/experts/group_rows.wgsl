// Sorts the pairs (row, expert) by expert, into tiles of TILE_M pairs of one expert: tile_experts [tiles] gets the expert of each tile,
// NO_EXPERT for unused tiles; tile_pairs [tiles, TILE_M] its pairs, NO_PAIR where a tile is not full. chosen [pairs] holds the expert of
// each pair; pairs of experts that this rank does not hold are left out.
//
// One workgroup runs a counting sort. The order of an expert's pairs is not deterministic; the result of expert_linear.wgsl does not depend
// on it. Reference: test/reference/experts.ts.
override WG: u32;

const NO_EXPERT = 0xffffffffu;
const NO_PAIR = 0xffffffffu;

struct Params {
  pairs: u32,
  tiles: u32,
  // The experts that this rank holds, at most EXPERTS.
  first_expert: u32,
  experts: u32,
}

@group(0) @binding(0) var<storage, read> chosen: array<u32>;
@group(0) @binding(1) var<storage, read_write> tile_experts: array<u32>;
@group(0) @binding(2) var<storage, read_write> tile_pairs: array<u32>;
@group(0) @binding(3) var<uniform> params: Params;

// By expert: the number of its pairs, then the place of the next one.
var<workgroup> places: array<atomic<u32>, EXPERTS>;
// By expert: its first tile; after the last expert, the number of tiles.
var<workgroup> first_tile: array<u32, EXPERTS + 1u>;

@compute @workgroup_size(WG)
fn main(@builtin(local_invocation_index) lane: u32) {
  for (var e = lane; e < params.experts; e += WG) {
    atomicStore(&places[e], 0u);
  }
  workgroupBarrier();
  for (var pair = lane; pair < params.pairs; pair += WG) {
    let expert = chosen[pair] - params.first_expert;
    if (expert < params.experts) {
      atomicAdd(&places[expert], 1u);
    }
  }
  workgroupBarrier();
  if (lane == 0u) {
    var tile = 0u;
    for (var e = 0u; e < params.experts; e++) {
      first_tile[e] = tile;
      tile += (atomicLoad(&places[e]) + TILE_M - 1u) / TILE_M;
    }
    first_tile[params.experts] = tile;
  }
  workgroupBarrier();
  for (var e = lane; e < params.experts; e += WG) {
    let count = atomicLoad(&places[e]);
    for (var tile = first_tile[e]; tile < first_tile[e + 1u]; tile++) {
      tile_experts[tile] = params.first_expert + e;
    }
    for (var place = first_tile[e] * TILE_M + count; place < first_tile[e + 1u] * TILE_M; place++) {
      tile_pairs[place] = NO_PAIR;
    }
    atomicStore(&places[e], first_tile[e] * TILE_M);
  }
  for (var tile = first_tile[params.experts] + lane; tile < params.tiles; tile += WG) {
    tile_experts[tile] = NO_EXPERT;
  }
  workgroupBarrier();
  for (var pair = lane; pair < params.pairs; pair += WG) {
    let expert = chosen[pair] - params.first_expert;
    if (expert < params.experts) {
      tile_pairs[atomicAdd(&places[expert], 1u)] = pair;
    }
  }
}
