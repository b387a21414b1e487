// Spans: runs of rows of one sequence whose recurrent state goes from row to row, two vectors each:
// (first row, rows, slot its state is read from, slot it is left in), and two copies, the earlier one first: (slot, rows after which it is taken) each.
// NO_SLOT to read from is the state before a sequence begins, all zeros; as a copy's it is no copy; 0 rows are padding. No two spans write one slot, and none
// reads what another writes; a span may write the slot that it reads, because an invocation has read its part of it before it writes.
const NO_SLOT = 0xffffffffu;

// Whether the state behind row i of a span goes into a copy.
fn is_kept(copy: vec2<u32>, i: u32) -> bool {
  return copy.x != NO_SLOT && i + 1u == copy.y;
}
