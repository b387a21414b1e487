// Random floats as a file stores them, in place of a file's: raw = words with values of SOURCE (0 f32, 1 f16, 2 bf16), two a word where they have 16 bits.
// Value i of a tensor is (2 c - 255) * 2^exponent, c = byte i % 4 of draw i / 4: eight bits and a power of two, which all three types hold exactly, made of bits
// alone, so that they are the same on every adapter. The first value is the tensor's value `first`, of which `count` follow. An invocation makes a word.
override WG: u32;
override SOURCE: u32;

struct Params {
  count: u32,
  first: u32,
  seed: u32,
  exponent: i32,
}

@group(0) @binding(0) var<storage, read_write> raw: array<u32>;
@group(0) @binding(1) var<uniform> params: Params;

fn value_of(index: u32) -> u32 {
  let code = i32((random_bits(params.seed, index >> 2u) >> ((index & 3u) * 8u)) & 0xffu) * 2 - 255;
  let magnitude = u32(abs(code));
  let top = firstLeadingBit(magnitude);
  let exponent = params.exponent + i32(top);
  let fraction = (magnitude << (23u - top)) & 0x7fffffu;
  let sign = select(0u, 1u, code < 0);
  if (SOURCE == 1u) {
    return (sign << 15u) | (u32(exponent + 15) << 10u) | (fraction >> 13u);
  }
  let single = (sign << 31u) | (u32(exponent + 127) << 23u) | fraction;
  return select(single >> 16u, single, SOURCE == 0u);
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let word = workgroup_index(group, groups) * WG + lane;
  let in_word = select(2u, 1u, SOURCE == 0u);
  let begin = word * in_word;
  if (begin >= params.count) {
    return;
  }
  var bits = value_of(params.first + begin);
  if (in_word == 2u && begin + 1u < params.count) {
    bits |= value_of(params.first + begin + 1u) << 16u;
  }
  raw[word] = bits;
}
