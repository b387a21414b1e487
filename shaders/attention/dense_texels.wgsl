// dense.wgsl with keys and values in one storage texture, and with the same bits: four channels per texel, 512 texels per row of the
// texture (ops/texels.ts). A texture load costs lavapipe a fraction of a buffer load, and loads are most of the cost of a row's attention
// (docs/decisions/attention.md). Reference: test/reference/dense-attention.ts.
struct Params {
  queries: u32,
  keys: u32,
  q_stride4: u32,
  q_column4: u32,
  k_stride4: u32,
  k_column4: u32,
  v_stride4: u32,
  v_column4: u32,
  out_stride4: u32,
  // D4 and LANES as params: loops over them are not unrolled, which would take software adapters half a minute to compile.
  d4: u32,
  lanes: u32,
  scale: f32,
  // 1 = several sequences. A param and not an override, so that encoders and decoders share a pipeline.
  tiled: u32,
}

@group(0) @binding(0) var<storage, read> q: array<vec4<f32>>;
@group(0) @binding(1) var k: texture_storage_2d<rgba32uint, read>;
@group(0) @binding(2) var<storage, read> tiles: array<vec4<u32>>;
@group(0) @binding(3) var<storage, read_write> out: array<vec4<f32>>;
@group(0) @binding(4) var<uniform> params: Params;

fn value_quad(at: u32) -> vec4<f32> {
  return key_quad(at);
}

@compute @workgroup_size(LANES)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  attend(group, lane);
}
