// Activations fused into the kernels that compute their input. ACTIVATION is a u32 override with one of these numbers
// (engine/ops/activation.ts).
const ACT_NONE = 0u;
const ACT_GELU = 1u;       // exact, by erf (Whisper)
const ACT_GELU_TANH = 2u;  // "gelu_new" (ALBERT, GPT-2)
const ACT_SILU = 3u;
const ACT_RELU = 4u;
const ACT_LEAKY = 5u;      // leaky ReLU with slope 0.2 (Kokoro's residual blocks)
const ACT_SIGMOID = 6u;
const ACT_TANH = 7u;
const ACT_RELU2 = 8u;      // relu(x)^2 (Primer, https://arxiv.org/abs/2109.08668)

// erf to better than 1e-6 by rational fits in two ranges (W. J. Cody, 1969); Abramowitz & Stegun 7.1.26 is too coarse for that.
fn erf(x: f32) -> f32 {
  let a = abs(x);
  if (a < 0.5) {
    let t = a * a;
    let p = 3.209377589138469472562e+03 + t * (3.774852376853020208137e+02 + t * (1.138641541510501556495e+02 + t * (3.161123743870565596947e+00 + t * 1.857777061846031526730e-01)));
    let q = 2.844236833439170622273e+03 + t * (1.282616526077372275645e+03 + t * (2.440246379344441733056e+02 + t * (2.360129095234412093499e+01 + t)));
    return x * p / q;
  }
  let c = min(a, 4.0);
  let p = 1.23033935479799725272e+03 + c * (2.05107837782607146532e+03 + c * (1.71204761263407058314e+03 + c * (8.81952221241769090411e+02 + c * (2.98635138197400131132e+02 + c * (6.61191906371416294775e+01 + c * (8.88314979438837594118e+00 + c * (5.64188496988670089180e-01 + c * 2.15311535474403846343e-08)))))));
  let q = 1.23033935480374942043e+03 + c * (3.43936767414372163696e+03 + c * (4.36261909014324715820e+03 + c * (3.29079923573345962678e+03 + c * (1.62138957456669018874e+03 + c * (5.37181101862009857509e+02 + c * (1.17693950891312499305e+02 + c * (1.57449261107098347253e+01 + c)))))));
  let r = 1.0 - exp(-c * c) * p / q;
  return select(r, -r, x < 0.0);
}

// tanh that stays finite for large arguments on every driver.
fn safe_tanh(x: f32) -> f32 {
  return tanh(clamp(x, -15.0, 15.0));
}

fn activate(kind: u32, x: f32) -> f32 {
  switch (kind) {
    case ACT_GELU: { return 0.5 * x * (1.0 + erf(x * 0.70710678118654752)); }
    case ACT_GELU_TANH: { return 0.5 * x * (1.0 + safe_tanh(0.79788456080286536 * (x + 0.044715 * x * x * x))); }
    case ACT_SILU: { return x / (1.0 + exp(-x)); }
    case ACT_RELU: { return max(x, 0.0); }
    case ACT_LEAKY: { return select(0.2 * x, x, x >= 0.0); }
    case ACT_SIGMOID: { return 1.0 / (1.0 + exp(-x)); }
    case ACT_TANH: { return safe_tanh(x); }
    case ACT_RELU2: { return max(x, 0.0) * max(x, 0.0); }
    default: { return x; }
  }
}
