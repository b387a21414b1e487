// Fused CPU kernels of an encoder layer's training step (fastops.py): activations bfloat16, sums float32.
// gcc -O3 -march=native -mprefer-vector-width=512 -ffast-math -shared -fPIC -o libfastasr.so fastops.c -lm
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
typedef uint16_t bf;
static inline float F(bf x) { uint32_t u = (uint32_t)x << 16; float r; memcpy(&r, &u, 4); return r; }
static inline bf H(float x) { uint32_t u; memcpy(&u, &x, 4); u += 0x7fff + ((u >> 16) & 1); return (bf)(u >> 16); }

// x += y (y may be 0), n = (x - mean) * r * w + b; stat = (mean, r) of each of the N rows of D
void add_norm(int N, int D, bf *restrict x, const bf *restrict y, const float *restrict w, const float *restrict b, bf *restrict n, float *restrict stat) {
  float v[D];
  for (int i = 0; i < N; i++, x += D, n += D) {
    float s = 0, q = 0;
    if (y) { for (int d = 0; d < D; d++) { x[d] = H(F(x[d]) + F(y[d])); } y += D; }
    for (int d = 0; d < D; d++) { v[d] = F(x[d]); s += v[d]; }
    s /= D;
    for (int d = 0; d < D; d++) { v[d] -= s; q += v[d] * v[d]; }
    float r = 1.f / sqrtf(q / D + 1e-5f);
    stat[2 * i] = s; stat[2 * i + 1] = r;
    for (int d = 0; d < D; d++) n[d] = H(v[d] * r * w[d] + b[d]);
  }
}

// g += gradient through the norm of x; gn: gradient of its output; gw, gb += those of its weights, sum += column sums of the new g
void norm_bwd(int N, int D, const bf *restrict gn, const bf *restrict x, const float *restrict w, const float *restrict stat, bf *restrict g, float *restrict gw, float *restrict gb, float *restrict sum) {
  float h[D], u[D];
  for (int i = 0; i < N; i++, gn += D, x += D, g += D) {
    float m = stat[2 * i], r = stat[2 * i + 1], a = 0, c = 0;
    for (int d = 0; d < D; d++) {
      h[d] = (F(x[d]) - m) * r;
      float e = F(gn[d]);
      gw[d] += e * h[d]; gb[d] += e;
      u[d] = e * w[d]; a += u[d]; c += u[d] * h[d];
    }
    a /= D; c /= D;
    for (int d = 0; d < D; d++) { float e = F(g[d]) + r * (u[d] - a - h[d] * c); sum[d] += e; g[d] = H(e); }
  }
}

// Phi(x) by Abramowitz and Stegun 7.1.26 (error below 1e-7); e = exp(-x^2 / 2)
static inline float phi(float x, float e) {
  float t = 1.f / (1.f + 0.3275911f * 0.70710678f * fabsf(x));
  float q = 0.5f * e * t * (0.254829592f + t * (-0.284496736f + t * (1.421413741f + t * (-1.453152027f + t * 1.061405429f))));
  return x > 0 ? 1.f - q : q;
}
void gelu(long n, const bf *restrict x, bf *restrict y) {
  for (long i = 0; i < n; i++) { float v = F(x[i]); y[i] = H(v * phi(v, expf(-0.5f * v * v))); }
}
// g *= gelu'(x) for N rows of D; sum += column sums
void gelu_bwd(long N, int D, const bf *restrict x, bf *restrict g, float *restrict sum) {
  for (long i = 0; i < N; i++, x += D, g += D)
    for (int d = 0; d < D; d++) {
      float v = F(x[d]), e = expf(-0.5f * v * v), o = F(g[d]) * (phi(v, e) + v * 0.39894228f * e);
      sum[d] += o; g[d] = H(o);
    }
}
void colsum(long N, int D, const bf *restrict x, float *restrict sum) {
  for (long i = 0; i < N; i++, x += D) for (int d = 0; d < D; d++) sum[d] += F(x[d]);
}

// [B, T, K, H, 64] <-> K times [B, H, T, 64], the first one times `scale`
void split(int B, int T, int K, int Hh, const bf *restrict x, float scale, bf *restrict o) {
  for (int b = 0; b < B; b++) for (int t = 0; t < T; t++) for (int k = 0; k < K; k++) for (int h = 0; h < Hh; h++, x += 64) {
    bf *q = o + ((((size_t)k * B + b) * Hh + h) * T + t) * 64;
    if (k == 0 && scale != 1) for (int d = 0; d < 64; d++) q[d] = H(F(x[d]) * scale);
    else memcpy(q, x, 128);
  }
}
void merge(int B, int T, int K, int Hh, const bf *restrict x, float scale, bf *restrict o) {
  for (int b = 0; b < B; b++) for (int t = 0; t < T; t++) for (int k = 0; k < K; k++) for (int h = 0; h < Hh; h++, o += 64) {
    const bf *q = x + ((((size_t)k * B + b) * Hh + h) * T + t) * 64;
    if (k == 0 && scale != 1) for (int d = 0; d < 64; d++) o[d] = H(F(q[d]) * scale);
    else memcpy(o, q, 128);
  }
}
void softmax(long N, int D, bf *restrict x) {
  float v[D];
  for (long i = 0; i < N; i++, x += D) {
    float m = -1e30f, s = 0;
    for (int d = 0; d < D; d++) { v[d] = F(x[d]); m = v[d] > m ? v[d] : m; }
    for (int d = 0; d < D; d++) { v[d] = expf(v[d] - m); s += v[d]; }
    s = 1.f / s;
    for (int d = 0; d < D; d++) x[d] = H(v[d] * s);
  }
}
// g: gradient of the probabilities p in, of the scores out
void softmax_bwd(long N, int D, const bf *restrict p, bf *restrict g) {
  float v[D];
  for (long i = 0; i < N; i++, p += D, g += D) {
    float s = 0;
    for (int d = 0; d < D; d++) { v[d] = F(p[d]) * F(g[d]); s += v[d]; }
    for (int d = 0; d < D; d++) g[d] = H(v[d] - F(p[d]) * s);
  }
}
