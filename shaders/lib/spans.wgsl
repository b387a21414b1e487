// Spans: runs of rows of one sequence whose recurrent state goes from row to row, two vectors each:
// (first row, rows, slot its state is read from, slot it is left in), (slot of a copy, rows after which that is taken, 0, 0).
// NO_SLOT to read from is the state before a sequence begins, all zeros; 0 rows are padding. No two spans write one slot, and none reads what another writes.
const NO_SLOT = 0xffffffffu;

// Whether the state behind row i of a span is copied.
fn is_kept(kept: vec4<u32>, i: u32) -> bool {
  return kept.x != NO_SLOT && i + 1u == kept.y;
}
