// Spans of recurrent layers: runs of rows of one sequence, whose state passes from row to row. A span is two vec4s: (first row, rows, slot
// that the state is read from, slot that it is written to), and two copies, the earlier one first, each (slot, rows after which the state
// is copied there). NO_SLOT to read from means the initial state, all zeros; NO_SLOT of a copy means no copy; a span of 0 rows is padding.
// No two spans write one slot, and none reads a slot that another writes. A span may write the slot that it reads, because each invocation
// reads its part of the state before it writes it.
const NO_SLOT = 0xffffffffu;

// Whether the state after row i of a span goes into this copy.
fn is_kept(copy: vec2<u32>, i: u32) -> bool {
  return copy.x != NO_SLOT && i + 1u == copy.y;
}
