// out[t, n] += sum_j h[t, s, j] * B[l, s, j, n], in place, where l is the LoRA adapter of row t and s the segment of column n
// (lib/lora_delta.wgsl). out [T, N]. Segments end before the quads of columns end0, end1 and n4. Rows without an adapter, and segments that
// it does not change, are left as they are. One invocation per quad of columns of a row. Reference: test/reference/lora.ts.
override WG: u32;

struct Params {
  segments: u32,
  ranks: u32,
  end0: u32,
  end1: u32,
  n4: u32,
  h_stride4: u32,
  out_stride4: u32,
}

@group(0) @binding(0) var<storage, read> h: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read> loras: array<u32>;
@group(0) @binding(2) var<storage, read> table: array<vec4<u32>>;
@group(0) @binding(3) var<storage, read> b: array<vec4<f32>>;
@group(0) @binding(4) var<storage, read_write> out: array<vec4<f32>>;
@group(0) @binding(5) var<uniform> params: Params;

@compute @workgroup_size(WG)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
  let column = id.x;
  let row = id.y;
  if (column >= params.n4) {
    return;
  }
  var segment = 0u;
  var begin = 0u;
  var end = params.end0;
  if (column >= params.end1) {
    segment = 2u;
    begin = params.end1;
    end = params.n4;
  } else if (column >= params.end0) {
    segment = 1u;
    begin = params.end0;
    end = params.end1;
  }
  let entry = entry_of(row, segment);
  if (entry.z > 0u) {
    out[row * params.out_stride4 + column] += delta(row, segment, entry, end - begin, column - begin);
  }
}
