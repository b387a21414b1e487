// x[i] = beta x + alpha_p x^2 where x > 0, else beta x + alpha_n (exp(min(x, eps)) - 1 - x), in place; x [count] (xIELU, https://arxiv.org/abs/2411.13010).
// One invocation per element. Reference: test/reference/activation.ts.
override WG: u32;

struct Params {
  count: u32,
  alpha_p: f32,
  alpha_n: f32,
  beta: f32,
  eps: f32,
}

@group(0) @binding(0) var<storage, read_write> x: array<f32>;
@group(0) @binding(1) var<uniform> params: Params;

// exp(y) - 1 - y for y <= 0; near 0, where the difference would leave nothing but rounding, by its series, which is exact to f32 there.
fn exp_beyond_line(y: f32) -> f32 {
  let series = y * y * (0.5 + y * (1.0 / 6.0 + y * (1.0 / 24.0 + y * (1.0 / 120.0 + y * (1.0 / 720.0 + y * (1.0 / 5040.0 + y / 40320.0))))));
  return select(exp(y) - 1.0 - y, series, y > -0.5);
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let i = workgroup_index(group, groups) * WG + lane;
  if (i >= params.count) {
    return;
  }
  let value = x[i];
  let y = min(value, params.eps);
  let bent = select(params.alpha_n * (exp_beyond_line(y) + (y - value)), params.alpha_p * value * value, value > 0.0);
  x[i] = bent + params.beta * value;
}
