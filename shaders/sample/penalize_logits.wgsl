// logits[b, i] with the penalties of row b for tokens that it has seen, in place. A token of prompt or answer is divided (positive logit)
// or multiplied (negative logit) by `repetition` (CTRL, Keskar et al. 2019); a token of the answer loses `presence` once and `frequency`
// for each time (OpenAI). logits [B, stride]; counts [slots][V]: times in the answer, top bit = in the prompt. Rows with neutral penalties
// are left alone to the bit. One invocation per logit. Reference: test/reference/logits.ts.
override WG: u32;

const IN_PROMPT = 0x80000000u;
// At or below this a token is ruled out, by a mask or by a bias. Such logits are left alone: times `repetition` they could become
// -infinity, and the difference of two of those NaN, or they could rise above this limit.
const RULED_OUT = -1e29;

struct Params {
  vocabulary: u32,
  stride: u32,
}

struct Penalties {
  repetition: f32,
  presence: f32,
  frequency: f32,
  slot: u32,
}

@group(0) @binding(0) var<storage, read> rows: array<Penalties>;
@group(0) @binding(1) var<storage, read> counts: array<u32>;
@group(0) @binding(2) var<storage, read_write> logits: array<f32>;
@group(0) @binding(3) var<uniform> params: Params;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let token = group.x * WG + lane;
  let row = rows[group.y];
  if (token >= params.vocabulary || (row.repetition == 1.0 && row.presence == 0.0 && row.frequency == 0.0)) {
    return;
  }
  let seen = counts[row.slot * params.vocabulary + token];
  if (seen == 0u) {
    return;
  }
  let at = group.y * params.stride + token;
  var value = logits[at];
  if (value <= RULED_OUT) {
    return;
  }
  value = select(value / row.repetition, value * row.repetition, value < 0.0);
  let times = seen & ~IN_PROMPT;
  if (times > 0u) {
    value -= row.presence + row.frequency * f32(times);
  }
  logits[at] = value;
}
