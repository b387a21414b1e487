// Rows of a recurrent layer's state matrix in registers: COLUMNS of a head's rows [4 values4, 4 D4], of each of which LANES invocations have
// SLICES vec4s. Rows beyond the last repeat it, and are not stored. Which rows are loaded, and where they are copied: lib/spans.wgsl.
const COLUMNS = 4u * COLUMNS4;

// Where the row that a workgroup has as its c-th begins, in a slot.
fn state_row(head: u32, first4: u32, c: u32) -> u32 {
  return (head * params.values4 * 4u + min(first4 * 4u + c, params.values4 * 4u - 1u)) * D4;
}

fn load_state(slot: u32, head: u32, first4: u32, lane: u32) -> array<vec4<f32>, COLUMNS * SLICES> {
  var state = array<vec4<f32>, COLUMNS * SLICES>();
  for (var c = 0u; c < COLUMNS; c++) {
    for (var s = 0u; s < SLICES; s++) {
      let d4 = s * LANES + lane;
      if (slot != NO_SLOT && d4 < D4) {
        state[c * SLICES + s] = states[slot * params.heads * params.values4 * 4u * D4 + state_row(head, first4, c) + d4];
      }
    }
  }
  return state;
}

fn store_state(slot: u32, head: u32, first4: u32, lane: u32, state: ptr<function, array<vec4<f32>, COLUMNS * SLICES>>) {
  for (var c = 0u; c < COLUMNS; c++) {
    for (var s = 0u; s < SLICES; s++) {
      let d4 = s * LANES + lane;
      if (d4 < D4 && first4 * 4u + c < params.values4 * 4u) {
        states[slot * params.heads * params.values4 * 4u * D4 + state_row(head, first4, c) + d4] = (*state)[c * SLICES + s];
      }
    }
  }
}

// Of four rows from index `first` on: their products with a vector, as far as this invocation has them.
fn rows_times(state: ptr<function, array<vec4<f32>, COLUMNS * SLICES>>, first: u32, v: vec4<f32>) -> vec4<f32> {
  return vec4<f32>(
    dot((*state)[first], v), dot((*state)[first + SLICES], v), dot((*state)[first + 2u * SLICES], v), dot((*state)[first + 3u * SLICES], v));
}

// Four rows = factor * rows + added v^T.
fn update_rows(state: ptr<function, array<vec4<f32>, COLUMNS * SLICES>>, first: u32, factor: f32, added: vec4<f32>, v: vec4<f32>) {
  (*state)[first] = fma(vec4<f32>(added.x), v, (*state)[first] * factor);
  (*state)[first + SLICES] = fma(vec4<f32>(added.y), v, (*state)[first + SLICES] * factor);
  (*state)[first + 2u * SLICES] = fma(vec4<f32>(added.z), v, (*state)[first + 2u * SLICES] * factor);
  (*state)[first + 3u * SLICES] = fma(vec4<f32>(added.w), v, (*state)[first + 3u * SLICES] * factor);
}
