// raw = random floats, as a file would store them, with values of SOURCE (0 f32, 1 f16, 2 bf16), two per word for 16-bit types. Value i of
// a tensor is (2 c - 255) * 2^exponent, where c is byte i % 4 of draw i / 4: eight bits and a power of two, which all three types hold
// exactly, computed on bits alone, so that every adapter gets the same values. raw holds values `first` to first + count - 1 of the tensor.
// One invocation per word.
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
