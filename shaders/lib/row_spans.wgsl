// Rows of the sequences of a batch, which lie one behind the other in a tensor: spans[s] = (first unit, units, ., .). A kernel's z is the
// number of a sequence, and x covers the rows of the longest. Sequence s begins at row `first unit * unit` and has `units * unit + rows`
// rows, where `unit` and `rows` differ from tensor to tensor. Without SPANS there is one sequence, of `rows` rows from row 0 on. The kernel
// declares SPANS and `spans`.

fn span_of(z: u32) -> vec2<u32> {
  if (SPANS) {
    return spans[z].xy;
  }
  return vec2<u32>();
}

fn span_rows(span: vec2<u32>, unit: u32, rows: u32) -> u32 {
  return span.y * unit + rows;
}
