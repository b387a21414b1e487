// out[t, s] = mean over heads of the median of (weights[head, t, s'] - mean) * (1 / deviation) over s' from s - 3 to s + 3, with (mean, 1 /
// deviation) = stats[head, s'] (alignment_stats.wgsl). Positions beyond either end are mirrored at it, the end itself not repeated; 3
// columns or fewer are not filtered. weights [H, max rows, positions], out [rows, columns]. One invocation per (s, t). Reference:
// test/reference/alignment.ts.
override WG: u32;

struct Params {
  heads: u32,
  columns: u32,
  row_stride: u32,
  head_stride: u32,
}

@group(0) @binding(0) var<storage, read> weights: array<f32>;
@group(0) @binding(1) var<storage, read> stats: array<vec2<f32>>;
@group(0) @binding(2) var<storage, read_write> out: array<f32>;
@group(0) @binding(3) var<uniform> params: Params;

fn normalised(head: u32, row: u32, s: u32) -> f32 {
  let stat = stats[head * params.row_stride + s];
  return (weights[head * params.head_stride + row * params.row_stride + s] - stat.x) * stat.y;
}

// Position s - 3 + i, mirrored at the ends.
fn neighbour(s: u32, i: u32) -> u32 {
  let at = abs(i32(s + i) - 3);
  let last = i32(params.columns) - 1;
  return u32(select(at, 2 * last - at, at > last));
}

// (smaller, larger): one comparator of a sorting network.
fn ordered(a: f32, b: f32) -> vec2<f32> {
  return vec2<f32>(min(a, b), max(a, b));
}

@compute @workgroup_size(WG)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
  let s = id.x;
  if (s >= params.columns) {
    return;
  }
  var sum = 0.0;
  for (var head = 0u; head < params.heads; head++) {
    if (params.columns <= 3u) {
      sum += normalised(head, id.y, s);
      continue;
    }
    var near = array<f32, 7>();
    for (var i = 0u; i < 7u; i++) {
      near[i] = normalised(head, id.y, neighbour(s, i));
    }
    // Four passes of bubble sort put the four largest values in place; the last of these is the median of seven.
    for (var round = 0u; round < 4u; round++) {
      for (var i = 0u; i < 6u - round; i++) {
        let pair = ordered(near[i], near[i + 1u]);
        near[i] = pair.x;
        near[i + 1u] = pair.y;
      }
    }
    sum += near[3];
  }
  out[id.y * params.columns + s] = sum / f32(params.heads);
}
