// The second half of a product of low rank, whose first is lora_shrink.wgsl: sum_j h[t, s, j] * B[l, s, j, n] for a quad of columns n of
// segment s, `width` quads wide; l is the LoRA adapter of row t. h [T, segments * ranks] in quads of j; B lies from vec4 table[l, s].y on as
// [4 * table[l, s].z][width]. For kernels with h, loras, table, b,
// params.segments, params.ranks and params.h_stride4.
fn entry_of(row: u32, segment: u32) -> vec4<u32> {
  return table[loras[row] * params.segments + segment];
}

fn delta(row: u32, segment: u32, entry: vec4<u32>, width: u32, column: u32) -> vec4<f32> {
  let of_row = row * params.h_stride4 + segment * params.ranks;
  var at = entry.y + column;
  var sum = vec4<f32>(0.0);
  for (var j = 0u; j < entry.z; j++) {
    let part = h[of_row + j];
    sum += part.x * b[at];
    sum += part.y * b[at + width];
    sum += part.z * b[at + 2u * width];
    sum += part.w * b[at + 3u * width];
    at += 4u * width;
  }
  return sum;
}
