// One step of an LSTM in workgroup memory: h, c = cell(h, c, inputs[first ...] + W_hh h), gates in the order i, f, g, o.
//
// The kernel declares gate_input, weight [H/4][DIRECTIONS][4H] of four values along H, out, state and cell, because naga (the translator of
// wgpu) fails where an array is declared before the override of its size. `state` has two copies of h, one read and one written, so a step
// needs one barrier. An invocation owns the units lane, lane + WG, ...; BLOCK of them share each read of h.

fn sigmoid(x: f32) -> f32 {
  return 1.0 / (1.0 + exp(-x));
}

// Computes the units of one invocation. Gate inputs come from gate_input(input_first + gate, bias_first + gate), which the kernel declares;
// h is read from state[read_at ...] and written to its other copy and to out[out_first ...].
fn lstm_step(lane: u32, direction: u32, read_at: u32, input_first: u32, bias_first: u32, out_first: u32) {
  let gates = 4u * HIDDEN;
  for (var first = lane; first < HIDDEN; first += WG * BLOCK) {
    var sum: array<vec4<f32>, BLOCK>;
    for (var b = 0u; b < BLOCK; b++) {
      let at = input_first + first + b * WG;
      let bias_at = bias_first + first + b * WG;
      for (var gate = 0u; gate < 4u; gate++) {
        sum[b][gate] = gate_input(at + gate * HIDDEN, bias_at + gate * HIDDEN);
      }
    }
    for (var k = 0u; k < HIDDEN / 4u; k++) {
      let h = vec4<f32>(state[read_at + 4u * k], state[read_at + 4u * k + 1u], state[read_at + 4u * k + 2u], state[read_at + 4u * k + 3u]);
      let row = (k * DIRECTIONS + direction) * gates + first;
      for (var b = 0u; b < BLOCK; b++) {
        let at = row + b * WG;
        sum[b].x += dot(h, unpack_weight(weight[at]));
        sum[b].y += dot(h, unpack_weight(weight[at + HIDDEN]));
        sum[b].z += dot(h, unpack_weight(weight[at + 2u * HIDDEN]));
        sum[b].w += dot(h, unpack_weight(weight[at + 3u * HIDDEN]));
      }
    }
    for (var b = 0u; b < BLOCK; b++) {
      let unit = first + b * WG;
      let c = sigmoid(sum[b].y) * cell[unit] + sigmoid(sum[b].x) * safe_tanh(sum[b].z);
      let h = sigmoid(sum[b].w) * safe_tanh(c);
      cell[unit] = c;
      state[HIDDEN - read_at + unit] = h;
      out[out_first + unit] = h;
    }
  }
}
