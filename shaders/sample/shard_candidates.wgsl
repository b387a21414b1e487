// out = statistics and candidates of one slice of the vocabulary, from which the merge of several slices cuts by top-k, top-p and min-p
// over all of it. For every listed row, from word `at` on: (number of candidates, largest logit, sum of exp((logit - largest) / T),
// threshold), then up to `capacity` candidates (token, logit, logit / T + noise, logit before processing) in no order. Candidates are the
// logits at or above thresholds[row] that no mask ruled out; the sums are over the whole slice. logits [B, stride]. One workgroup per
// listed row. Reference: test/reference/sample.ts.
override WG: u32;

// Masked logits (mask_logits.wgsl) have this value.
const LOWEST = -3.4e38;
const HEAD = 4u;
const ENTRY = 4u;

struct Params {
  vocabulary: u32,
  stride: u32,
  first: u32,
  at: u32,
  capacity: u32,
}

@group(0) @binding(0) var<storage, read> logits: array<f32>;
@group(0) @binding(1) var<storage, read> unprocessed: array<f32>;
@group(0) @binding(2) var<storage, read> rows: array<SamplingRow>;
@group(0) @binding(3) var<storage, read> indices: array<u32>;
@group(0) @binding(4) var<storage, read> thresholds: array<f32>;
@group(0) @binding(5) var<storage, read_write> out: array<u32>;
@group(0) @binding(6) var<uniform> params: Params;

var<workgroup> lane_values: array<f32, WG>;
var<workgroup> count: atomic<u32>;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let b = indices[group.x];
  let row = rows[b];
  let base = b * params.stride;
  let least = thresholds[b];
  let at = params.at + group.x * (HEAD + ENTRY * params.capacity);
  var top = LOWEST;
  for (var i = lane; i < params.vocabulary; i += WG) {
    top = max(top, logits[base + i]);
  }
  lane_values[lane] = top;
  // Explicitly, because Dawn does not zero workgroup memory with --dawn-toggles fast, nor in the library.
  if (lane == 0u) {
    atomicStore(&count, 0u);
  }
  workgroupBarrier();
  for (var i = 0u; i < WG; i++) {
    top = max(top, lane_values[i]);
  }
  workgroupBarrier();
  var sum = 0.0;
  for (var i = lane; i < params.vocabulary; i += WG) {
    let logit = logits[base + i];
    sum += exp((logit - top) * row.inverse_temperature);
    if (logit >= least && logit > LOWEST) {
      let slot = atomicAdd(&count, 1u);
      if (slot < params.capacity) {
        let token = params.first + i;
        let entry = at + HEAD + ENTRY * slot;
        out[entry] = token;
        out[entry + 1u] = bitcast<u32>(logit);
        out[entry + 2u] = bitcast<u32>(perturbed(row, logit, gumbel_noise(row, token)[token % 4u]));
        out[entry + 3u] = bitcast<u32>(unprocessed[base + i]);
      }
    }
  }
  lane_values[lane] = sum;
  workgroupBarrier();
  if (lane == 0u) {
    var total = 0.0;
    for (var i = 0u; i < WG; i++) {
      total += lane_values[i];
    }
    out[at] = atomicLoad(&count);
    out[at + 1u] = bitcast<u32>(top);
    out[at + 2u] = bitcast<u32>(total);
    out[at + 3u] = bitcast<u32>(least);
  }
}
