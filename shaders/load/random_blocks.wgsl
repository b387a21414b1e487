// raw = random quantised blocks of STORED_BYTES each, as a file would store them, one behind the other, from the tensor's block `first` on.
// Byte b of a block is byte b % 4 of draw block * ceil(STORED_BYTES / 4) + b / 4, except its scale (SCALE_BYTES at SCALE_AT; if 0, an f16 in
// the upper nibbles of every second of eight bytes) and, with HAS_OFFSET, its offset (two bytes at OFFSET_AT), which are given. Where scales
// are f16 the two are negated in half of the blocks, at random. raw has `words` words. One invocation per word.
override WG: u32;

struct Params {
  words: u32,
  first: u32,
  seed: u32,
  scale: u32,
  offset: u32,
}

@group(0) @binding(0) var<storage, read_write> raw: array<u32>;
@group(0) @binding(1) var<uniform> params: Params;

const DRAWS = (STORED_BYTES + 3u) / 4u;
// Changes the seed, so that signs are drawn independently of codes.
const SIGNS = 0x5bd1e995u;

fn byte_of(block: u32, place: u32) -> u32 {
  let sign = select(0u, random_bits(params.seed ^ SIGNS, block) & 0x8000u, SCALE_BYTES == 0u || SCALE_BYTES == 2u);
  if (place >= SCALE_AT && place < SCALE_AT + SCALE_BYTES) {
    return ((params.scale ^ sign) >> ((place - SCALE_AT) * 8u)) & 0xffu;
  }
  if (HAS_OFFSET == 1u && place >= OFFSET_AT && place < OFFSET_AT + 2u) {
    return ((params.offset ^ sign) >> ((place - OFFSET_AT) * 8u)) & 0xffu;
  }
  let byte = (random_bits(params.seed, block * DRAWS + (place >> 2u)) >> ((place & 3u) * 8u)) & 0xffu;
  let within = place - SCALE_AT;
  if (SCALE_BYTES == 0u && place >= SCALE_AT && within < 8u && within % 2u == 1u) {
    return (byte & 15u) | ((((params.scale ^ sign) >> (within / 2u * 4u)) & 15u) << 4u);
  }
  return byte;
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let word = workgroup_index(group, groups) * WG + lane;
  if (word >= params.words) {
    return;
  }
  var bits = 0u;
  for (var i = 0u; i < 4u; i++) {
    let at = word * 4u + i;
    bits |= byte_of(params.first + at / STORED_BYTES, at % STORED_BYTES) << (i * 8u);
  }
  raw[word] = bits;
}
