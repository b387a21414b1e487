// lstm.wgsl for adapters whose subgroup is a SIMD register of 8: SEQUENCES of a batch share each load of the weights. Same order of sums,
// same bits.
//
// inputs, style and out as in lstm.wgsl, read and written by two neighbouring units at a time. The weights lie in a storage texture [N /
// 64][H/4][64 columns] of four values along H, one column per texel, or with HALF, in f16, two; 512 texels per row of the texture. A lane
// has units 16 u + 2 lane and 16 u + 2 lane + 1 of every block u. It keeps their c and, for this step and the last, their h, and passes h
// on by shuffles, so there is no barrier. Steps after the end of a shorter sequence are computed but not stored. Reference:
// test/reference/lstm.ts.
override STYLED: bool;
override SPANS: bool;
override HALF: bool;

struct Params {
  steps_unit: u32,
  steps: u32,
  out_stride: u32,
  style_first: u32,
  style_stride: u32,
  count: u32,
}

@group(0) @binding(0) var<storage, read> inputs: array<vec2<f32>>;
@group(0) @binding(1) var weight: texture_storage_2d<rgba32uint, read>;
@group(0) @binding(2) var<storage, read> style: array<vec2<f32>>;
@group(0) @binding(3) var<storage, read> spans: array<vec4<u32>>;
@group(0) @binding(4) var<storage, read_write> out: array<vec2<f32>>;
@group(0) @binding(5) var<uniform> params: Params;

const HIDDEN = 16u * UNITS;

var<private> state: array<vec2<f32>, 2u * SEQUENCES * UNITS>;
var<private> cell: array<vec2<f32>, SEQUENCES * UNITS>;
var<private> sum: array<array<vec4<f32>, 2>, SEQUENCES>;

fn texel(at: u32) -> vec4<u32> {
  return textureLoad(weight, vec2<u32>(at % 512u, at / 512u));
}

// Weights of a column (even) and of the next one.
fn pair(column: u32, quad: u32) -> array<vec4<f32>, 2> {
  let at = (column / 64u * 4u * UNITS + quad) * 64u + column % 64u;
  if (HALF) {
    let both = texel(at / 2u);
    return array(vec4<f32>(unpack2x16float(both.x), unpack2x16float(both.y)), vec4<f32>(unpack2x16float(both.z), unpack2x16float(both.w)));
  }
  return array(bitcast<vec4<f32>>(texel(at)), bitcast<vec4<f32>>(texel(at + 1u)));
}

// Adds the contribution of four units: those of lanes 2 part and 2 part + 1 in block k, whose h is in `mine`.
fn add_quad(mine: array<vec2<f32>, SEQUENCES>, k: u32, part: u32, column: u32) {
  var w: array<array<vec4<f32>, 2>, 4>;
  for (var gate = 0u; gate < 4u; gate++) {
    w[gate] = pair(column + gate * HIDDEN, 4u * k + part);
  }
  for (var s = 0u; s < SEQUENCES; s++) {
    let h = vec4<f32>(subgroupShuffle(mine[s], 2u * part), subgroupShuffle(mine[s], 2u * part + 1u));
    for (var b = 0u; b < 2u; b++) {
      sum[s][b] += vec4<f32>(dot(h, w[0][b]), dot(h, w[1][b]), dot(h, w[2][b]), dot(h, w[3][b]));
    }
  }
}

fn sigmoid(x: vec2<f32>) -> vec2<f32> {
  return 1.0 / (1.0 + exp(-x));
}

fn safe_tanh(x: vec2<f32>) -> vec2<f32> {
  return tanh(clamp(x, vec2<f32>(-15.0), vec2<f32>(15.0)));
}

@compute @workgroup_size(8)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(subgroup_invocation_id) lane: u32) {
  let direction = group.x;
  var first: array<u32, SEQUENCES>;
  var steps: array<u32, SEQUENCES>;
  var bias: array<u32, SEQUENCES>;
  var longest = 0u;
  for (var s = 0u; s < SEQUENCES; s++) {
    // Places beyond the last sequence repeat it.
    let sequence = min(group.z * SEQUENCES + s, params.count - 1u);
    let span = span_of(sequence);
    first[s] = span.x * params.steps_unit;
    steps[s] = span_rows(span, params.steps_unit, params.steps);
    bias[s] = (sequence * params.style_stride + params.style_first) / 2u;
    longest = max(longest, steps[s]);
  }
  for (var step = 0u; step < longest; step++) {
    let read = (step & 1u) * SEQUENCES * UNITS;
    for (var u = 0u; u < UNITS; u++) {
      let column = direction * 4u * HIDDEN + 16u * u + 2u * lane;
      var row: array<u32, SEQUENCES>;
      for (var s = 0u; s < SEQUENCES; s++) {
        let walked = min(step, steps[s] - 1u);
        row[s] = first[s] + select(walked, steps[s] - 1u - walked, direction == 1u);
        for (var gate = 0u; gate < 4u; gate++) {
          let at = (column + gate * HIDDEN) / 2u;
          var x = inputs[row[s] * 4u * HIDDEN + at];
          if (STYLED) {
            x += style[bias[s] + at];
          }
          sum[s][0][gate] = x.x;
          sum[s][1][gate] = x.y;
        }
      }
      for (var k = 0u; k < UNITS; k++) {
        var mine: array<vec2<f32>, SEQUENCES>;
        for (var s = 0u; s < SEQUENCES; s++) {
          mine[s] = state[read + s * UNITS + k];
        }
        add_quad(mine, k, 0u, column);
        add_quad(mine, k, 1u, column);
        add_quad(mine, k, 2u, column);
        add_quad(mine, k, 3u, column);
      }
      for (var s = 0u; s < SEQUENCES; s++) {
        let at = s * UNITS + u;
        let gates = transpose(mat2x4<f32>(sum[s][0], sum[s][1]));
        let c = sigmoid(gates[1]) * cell[at] + sigmoid(gates[0]) * safe_tanh(gates[2]);
        let h = sigmoid(gates[3]) * safe_tanh(c);
        cell[at] = c;
        state[SEQUENCES * UNITS - read + at] = h;
        if (step < steps[s]) {
          out[(row[s] * params.out_stride + direction * HIDDEN) / 2u + 8u * u + lane] = h;
        }
      }
    }
  }
}
