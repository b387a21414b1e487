// Stored codes 0 to 2, 256 per block, as digits of base 3 (TQ1_0): 160 in 32 bytes, 80 in the next 16, five digits each, and 16 in 4 bytes,
// four digits each. Digit n of a byte b is that part of 3 of which b * 3^n mod 256 is a part of 256.
const TWO_BYTES = 0x00ff00ffu;

fn codes_at(stored: u32, quad: u32) -> u32 {
  var place = vec3<u32>(quad >> 3u, (quad & 7u) * 4u, 0u);
  if (quad >= 40u) {
    place = vec3<u32>((quad - 40u) >> 2u, (quad & 3u) * 4u, 32u);
  }
  if (quad >= 60u) {
    place = vec3<u32>(quad - 60u, 0u, 48u);
  }
  var power = 1u;
  for (var n = 0u; n < place.x; n++) {
    power *= 3u;
  }
  let bytes = word_from(stored + CODES_AT + place.y + place.z);
  // Two bytes at a time, each with eight bits above it.
  let even = ((bytes & TWO_BYTES) * power) & TWO_BYTES;
  let odd = (((bytes >> 8u) & TWO_BYTES) * power) & TWO_BYTES;
  return (((even * 3u) >> 8u) & TWO_BYTES) | ((odd * 3u) & ~TWO_BYTES);
}

fn group_scales(stored: u32, group: u32) -> u32 {
  return 0u;
}
