// q[t, h] = (latent[t, h], rotate(rotary[t, h], positions[t])): queries of multi-head latent attention, as attention over the latent keys of
// latent_store.wgsl reads them.
//
// latent [T, H, R], rotary [T, H, P], q [T, H, R + P]; R a multiple of 4, P of 8. Rotation and cos_sin as in rope_kv_store.wgsl, over the P
// channels. One invocation per four channels of the latent, or four channels and their partners of the rotary part; invocations
// (H (R / 4 + P / 8), T). Reference: test/reference/latent.ts.
override WG: u32;
// R / 4 and P / 8; overrides, because division by a constant is cheap and by a variable is not.
override R4: u32;
override D8: u32;

struct Params {
  heads: u32,
}

@group(0) @binding(0) var<storage, read> latent: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read> rotary: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read> cos_sin: array<vec4<f32>>;
@group(0) @binding(3) var<storage, read> positions: array<u32>;
@group(0) @binding(4) var<storage, read_write> q: array<vec4<f32>>;
@group(0) @binding(5) var<uniform> params: Params;

@compute @workgroup_size(WG)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
  let head = id.x / (R4 + D8);
  let at = id.x % (R4 + D8);
  let row = id.y;
  if (head >= params.heads) {
    return;
  }
  let index = row * params.heads + head;
  let to = index * (R4 + 2u * D8);
  if (at < R4) {
    q[to + at] = latent[index * R4 + at];
    return;
  }
  let d = at - R4;
  let first = index * 2u * D8 + d;
  let pair = turned(Pair(rotary[first], rotary[first + D8]), positions[row], d);
  q[to + R4 + d] = pair.low;
  q[to + R4 + d + D8] = pair.high;
}
