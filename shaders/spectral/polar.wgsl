// out[f, k] = |z| and out[f, bins + k] = arg z with z = x[f, k] + i x[f, bins + k]: magnitude and angle of a spectrum.
//
// x and out [frames, stride]; columns from 2 bins on are left alone. A negative real number has the angle +pi. One invocation per bin.
// Reference: test/reference/istft.ts.
override WG_ROWS: u32;

struct Params {
  frames: u32,
  bins: u32,
  stride: u32,
}

@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> out: array<f32>;
@group(0) @binding(2) var<uniform> params: Params;

// atan on [0, 1]: reduced to |t| <= tan(pi / 8), then an odd polynomial (Cephes atanf); WGSL promises only 4096 ulp.
fn precise_atan(x: f32) -> f32 {
  let far = x > 0.4142135623730950;
  let t = select(x, (x - 1.0) / (x + 1.0), far);
  let z = t * t;
  let p = fma(z, fma(z, fma(z, 8.05374449538e-2, -1.38776856032e-1), 1.99777106478e-1), -3.33329491539e-1);
  return select(0.0, 0.78539816339744831, far) + fma(t * z, p, t);
}

fn angle(im: f32, re: f32) -> f32 {
  let a = abs(re);
  let b = abs(im);
  let high = max(a, b);
  if (high == 0.0) {
    return 0.0;
  }
  var result = precise_atan(min(a, b) / high);
  result = select(result, 1.5707963267948966 - result, b > a);
  result = select(result, 3.1415926535897932 - result, re < 0.0);
  return select(result, -result, im < 0.0);
}

@compute @workgroup_size(8, WG_ROWS)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
  if (id.x >= params.bins || id.y >= params.frames) {
    return;
  }
  let at = id.y * params.stride + id.x;
  let re = x[at];
  let im = x[at + params.bins];
  out[at] = sqrt(re * re + im * im);
  out[at + params.bins] = angle(im, re);
}
