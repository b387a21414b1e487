// out[t, n] += sum_j (sum_k y[t, k] * A[l, s, j, k]) * B[l, s, j, n], in place, with y = x / rms(x) * norm (HAS_NORM) or y = x, where l is
// the LoRA adapter of row t and s the segment of column n; with GATED then activated[t, i] = f(out[t, i]) * out[t, N / 2 + i], f by
// ACTIVATION (lib/activation.wgsl), with the bits of gate_mul.wgsl.
//
// lora_shrink.wgsl, lora_expand.wgsl and gate_mul.wgsl in one dispatch, for software adapters, where a dispatch costs more than the sums of
// a row. x [T, K], out [T, N]. A lies from vec4 table[l, s].x on as [rank][K / 4], B from table[l, s].y on as [rank][columns of the segment
// / 4]; ranks are quads, table[l, s].z of them, and taken by twos. Segments end before the quads of columns end0, end1 and n4. A row has one
// workgroup, or several that share its columns: each of them then multiplies by A for itself. Reference: test/reference/lora.ts.
override WG: u32;
override HAS_NORM: bool;
override GATED: bool;
override ACTIVATION: u32;

struct Params {
  segments: u32,
  k4: u32,
  end0: u32,
  end1: u32,
  n4: u32,
  out_stride4: u32,
  eps: f32,
}

@group(0) @binding(0) var<storage, read> x: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read> norm: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read> loras: array<u32>;
@group(0) @binding(3) var<storage, read> table: array<vec4<u32>>;
@group(0) @binding(4) var<storage, read> a: array<vec4<f32>>;
@group(0) @binding(5) var<storage, read> b: array<vec4<f32>>;
@group(0) @binding(6) var<storage, read_write> out: array<vec4<f32>>;
@group(0) @binding(7) var<storage, read_write> activated: array<vec4<f32>>;
@group(0) @binding(8) var<uniform> params: Params;

fn by_four(h: vec4<f32>, at: u32, width: u32) -> vec4<f32> {
  return h.x * b[at] + h.y * b[at + width] + h.z * b[at + 2u * width] + h.w * b[at + 3u * width];
}

// Adds what two quads of ranks, or the last one, give to the columns [start, stop) of a segment of `width`, whose first is `base` in out.
fn add_ranks(row: u32, lane: u32, entry: vec4<u32>, quad: u32, base: u32, width: u32, start: u32, stop: u32) {
  let k4 = params.k4;
  let two = quad + 1u < entry.z;
  let first = entry.x + 4u * quad * k4;
  var low = vec4<f32>(0.0);
  var high = vec4<f32>(0.0);
  for (var k = lane; k < k4; k += WG) {
    let v = x_quad(row, k);
    let at = first + k;
    low += vec4<f32>(dot(v, a[at]), dot(v, a[at + k4]), dot(v, a[at + 2u * k4]), dot(v, a[at + 3u * k4]));
    if (two) {
      high += vec4<f32>(dot(v, a[at + 4u * k4]), dot(v, a[at + 5u * k4]), dot(v, a[at + 6u * k4]), dot(v, a[at + 7u * k4]));
    }
  }
  low = vec4<f32>(reduce_sum(lane, low.x), reduce_sum(lane, low.y), reduce_sum(lane, low.z), reduce_sum(lane, low.w));
  high = vec4<f32>(reduce_sum(lane, high.x), reduce_sum(lane, high.y), reduce_sum(lane, high.z), reduce_sum(lane, high.w));
  let rows_of_b = entry.y + 4u * quad * width;
  for (var column = start + lane; column < stop; column += WG) {
    var sum = by_four(low, rows_of_b + column, width);
    if (two) {
      sum += by_four(high, rows_of_b + 4u * width + column, width);
    }
    out[base + column] += sum;
  }
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let row = group.y;
  let lora = loras[row];
  let of_row = row * params.out_stride4;
  if (lora > 0u) {
    norm_row(row, lane);
    for (var segment = 0u; segment < params.segments; segment++) {
      let begin = select(select(params.end1, params.end0, segment == 1u), 0u, segment == 0u);
      let end = select(select(params.n4, params.end1, segment == 1u), params.end0, segment == 0u);
      let entry = table[lora * params.segments + segment];
      let share = share_of(end - begin, groups.x);
      let start = group.x * share;
      for (var quad = 0u; quad < entry.z; quad += 2u) {
        add_ranks(row, lane, entry, quad, of_row + begin, end - begin, start, min(start + share, end - begin));
      }
    }
  }
  if (GATED) {
    // An invocation has the columns of gates and of ups that it wrote itself.
    let columns = params.end0;
    let share = share_of(columns, groups.x);
    let start = group.x * share;
    for (var i = start + lane; i < min(start + share, columns); i += WG) {
      activated[row * columns + i] = activate4(out[of_row + i]) * out[of_row + columns + i];
    }
  }
}

// Columns of each of `groups` workgroups, a multiple of WG.
fn share_of(columns: u32, groups: u32) -> u32 {
  return (columns + groups * WG - 1u) / (groups * WG) * WG;
}
