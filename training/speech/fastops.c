// Fused AdaIN + snake for CPU training, f32 or bf16 in and out, f32 inside.
// gcc -O3 -march=native -ffast-math -shared -fPIC -o libfastops.so fastops.c -lm
#include <math.h>
#include <stdint.h>
#include <string.h>
typedef uint16_t bf16;
static inline float ld_f(const float *p, long i) { return p[i]; }
static inline void st_f(float *p, long i, float v) { p[i] = v; }
static inline float ld_h(const bf16 *p, long i) { uint32_t u = (uint32_t)p[i] << 16; float f; memcpy(&f, &u, 4); return f; }
static inline void st_h(bf16 *p, long i, float v) { uint32_t u; memcpy(&u, &v, 4); p[i] = (bf16)((u + 0x7fff + ((u >> 16) & 1)) >> 16); }
#define DEFINE(NAME, X, LX, SX, Y, LY, SY)                                                                                            \
  void NAME##_fwd(const X *x, const float *g, const float *b, const float *alpha, Y *out, float *mean, float *rstd, int B, int C, int T) { \
    for (int i = 0; i < B * C; i++) {                                                                                                 \
      const X *p = x + (long)i * T; Y *o = out + (long)i * T;                                                                         \
      float s = 0, q = 0;                                                                                                             \
      for (int t = 0; t < T; t++) s += LX(p, t);                                                                                      \
      float m = s / T;                                                                                                                \
      for (int t = 0; t < T; t++) { float d = LX(p, t) - m; q += d * d; }                                                             \
      float r = 1.0f / sqrtf(q / T + 1e-5f), a = alpha[i % C], gi = g[i] * r, bi = b[i] - m * gi, h = 0.5f / a, a2 = 2 * a;           \
      mean[i] = m; rstd[i] = r;                                                                                                       \
      for (int t = 0; t < T; t++) { float y = LX(p, t) * gi + bi; SY(o, t, y + h - h * cosf(a2 * y)); }                               \
    }                                                                                                                                 \
  }                                                                                                                                   \
  void NAME##_bwd(const Y *dout, const X *x, const float *g, const float *b, const float *alpha, const float *mean, const float *rstd, \
                  X *dx, float *dg, float *db, float *da, float *tmp, int B, int C, int T) {                                          \
    for (int i = 0; i < B * C; i++) {                                                                                                 \
      const X *p = x + (long)i * T; const Y *d = dout + (long)i * T; X *o = dx + (long)i * T;                                         \
      float a = alpha[i % C], m = mean[i], r = rstd[i], gi = g[i] * r, bi = b[i] - m * gi, a2 = 2 * a, ia = 1 / a, sd = 0, sx = 0, sa = 0; \
      for (int t = 0; t < T; t++) {                                                                                                   \
        float v = LX(p, t), y = v * gi + bi, dt = LY(d, t);                                                                           \
        float sn = sinf(a2 * y), cs = sinf(a2 * y + 1.57079633f); /* not cosf: gcc would fuse the pair into a scalar sincosf */       \
        float dy = dt * (1 + sn);                                                                                                     \
        sa += dt * (y * sn - 0.5f * ia * (1 - cs));                                                                                   \
        sd += dy; sx += dy * (v - m); tmp[t] = dy;                                                                                    \
      }                                                                                                                               \
      sx *= r; db[i] = sd; dg[i] = sx; da[i % C] += sa * ia;                                                                          \
      float k = gi, c0 = sd / T, c1 = sx / T * r;                                                                                     \
      for (int t = 0; t < T; t++) SX(o, t, k * (tmp[t] - c0 - (LX(p, t) - m) * c1));                                                  \
    }                                                                                                                                 \
  }
DEFINE(adain_snake_ff, float, ld_f, st_f, float, ld_f, st_f)
DEFINE(adain_snake_fh, float, ld_f, st_f, bf16, ld_h, st_h)
DEFINE(adain_snake_hh, bf16, ld_h, st_h, bf16, ld_h, st_h)
