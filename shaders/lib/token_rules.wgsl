// Whisper's rules for the next token, for the kernels that choose one (sample/constrained_token.wgsl) or several
// (sample/token_candidates.wgsl).
//
// Allowed are the tokens whose bit in masks[row.mask] is clear. With TIMESTAMPS there are also rules for ids >= timestamp_begin: timestamps
// come in pairs (after a single one comes another or the end, after a pair comes text), never run backwards, and begin the transcript.
// Needs the kernel's `masks` and `params`.
const TIMESTAMPS = 1u;
const FIRST = 2u;
const PROBE = 4u;
const CANDIDATES = 8u;

struct Row {
  slot: u32,
  mask: u32,
  mode: u32,
  probe: u32,
  inverse_temperature: f32,
  seed: u32,
  position: u32,
  // State of the tokens so far, where the host keeps it: before.x in bit 0, before.y in bit 1, before.z from bit 2 on.
  history: u32,
}

// before = (last token is a timestamp, the one before is, last timestamp, -).
fn allowed(token: u32, row: Row, before: vec4<u32>) -> bool {
  if (((masks[row.mask * params.mask_words + token / 32u] >> (token % 32u)) & 1u) == 1u) {
    return false;
  }
  if ((row.mode & TIMESTAMPS) == 0u) {
    return true;
  }
  let is_timestamp = token >= params.timestamp_begin;
  if ((row.mode & FIRST) != 0u) {
    return is_timestamp && token <= params.timestamp_begin + params.max_initial;
  }
  let open = before.x == 1u && before.y == 0u;
  if (is_timestamp) {
    return (before.x == 0u || open) && (before.z == 0u || token >= before.z + select(1u, 0u, open));
  }
  return !open || token >= params.eos;
}
