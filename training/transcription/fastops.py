"""CPU only: an encoder layer's training step with fused kernels (fastops.c) between the matrix products, bf16. Without the library plain torch runs."""

import ctypes, os, subprocess, torch
import paths

_so = paths.WORK + '/libfastasr.so'
_c = paths.HERE + '/fastops.c'


def _load():
    if 'amx_bf16' not in open('/proc/cpuinfo').read():
        return None
    if not os.path.exists(_so) or os.path.getmtime(_so) < os.path.getmtime(_c):
        subprocess.run(['gcc', '-O3', '-march=native', '-mprefer-vector-width=512', '-ffast-math', '-shared', '-fPIC', '-o', _so, _c, '-lm'], check=True)
    return ctypes.CDLL(_so)


lib = _load()
P = lambda t: ctypes.c_void_p(t.data_ptr()) if t is not None else None
L = ctypes.c_long
FL = ctypes.c_float


def norm(x, y, w, b):
    """x += y in place; -> layer norm of x, statistics."""
    n, st = torch.empty_like(x), torch.empty(x.shape[0], 2)
    lib.add_norm(*x.shape, P(x), P(y), P(w), P(b), P(n), P(st))
    return n, st


def gelu(x):
    y = torch.empty_like(x)
    lib.gelu(L(x.numel()), P(x), P(y))
    return y


class Gelu(torch.autograd.Function):
    """Exact GELU of a contiguous bf16 tensor."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return gelu(x)

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        g = g.clone(memory_format=torch.contiguous_format)
        unused = torch.zeros(x.shape[-1])
        lib.gelu_bwd(L(x.numel() // x.shape[-1]), x.shape[-1], P(x), P(g), P(unused))
        return g


class EncLayer(torch.autograd.Function):
    """x + attention(norm(x)), then + feed-forward(norm(.)); x (B, T, D), heads of 64."""

    @staticmethod
    def forward(ctx, x, n1w, n1b, wqkv, bqkv, wo, bo, n2w, n2b, w1, b1, w2, b2):
        B, T, D = x.shape
        h = D // 64
        x0 = x.reshape(B * T, D).clone()
        n1w, n1b, n2w, n2b = (t.float() for t in (n1w, n1b, n2w, n2b))
        n1, s1 = norm(x0, None, n1w, n1b)
        qkv = torch.addmm(bqkv, n1, wqkv.t())
        heads = torch.empty(3, B * h, T, 64, dtype=x.dtype)
        lib.split(B, T, 3, h, P(qkv), FL(0.125), P(heads))
        q, k, v = heads
        p = torch.bmm(q, k.mT)
        lib.softmax(L(B * h * T), T, P(p))
        oh = torch.bmm(p, v)
        o = torch.empty(B * T, D, dtype=x.dtype)
        lib.merge(B, T, 1, h, P(oh), FL(1), P(o))
        x1 = x0.clone()
        n2, s2 = norm(x1, torch.addmm(bo, o, wo.t()), n2w, n2b)
        a = torch.addmm(b1, n2, w1.t())
        act = gelu(a)
        y = torch.addmm(b2, act, w2.t()).add_(x1)
        ctx.save_for_backward(x0, n1w, n1, s1, wqkv, heads, p, o, wo, x1, n2w, n2, s2, w1, a, act, w2)
        return y.view(B, T, D)

    @staticmethod
    def backward(ctx, gy):
        x0, n1w, n1, s1, wqkv, heads, p, o, wo, x1, n2w, n2, s2, w1, a, act, w2 = ctx.saved_tensors
        B, T, D = gy.shape
        h, N = D // 64, B * T
        z = lambda n: torch.zeros(n)
        g = gy.reshape(N, D).clone()
        b2 = z(D)
        lib.colsum(L(N), D, P(g), P(b2))
        gw2 = g.t() @ act
        ga, b1 = g @ w2, z(a.shape[1])
        lib.gelu_bwd(L(N), a.shape[1], P(a), P(ga), P(b1))
        gw1 = ga.t() @ n2
        gn, n2wg, n2bg, bo = ga @ w1, z(D), z(D), z(D)
        lib.norm_bwd(N, D, P(gn), P(x1), P(n2w), P(s2), P(g), P(n2wg), P(n2bg), P(bo))
        gwo = g.t() @ o
        go, goh = g @ wo, torch.empty(B * h, T, 64, dtype=g.dtype)
        lib.split(B, T, 1, h, P(go), FL(1), P(goh))
        q, k, v = heads
        gh = torch.empty_like(heads)
        torch.bmm(p.mT, goh, out=gh[2])
        gp = torch.bmm(goh, v.mT)
        lib.softmax_bwd(L(B * h * T), T, P(p), P(gp))
        torch.bmm(gp, k, out=gh[0])
        torch.bmm(gp.mT, q, out=gh[1])
        gqkv, bqkv = torch.empty(N, 3 * D, dtype=g.dtype), z(3 * D)
        lib.merge(B, T, 3, h, P(gh), FL(0.125), P(gqkv))
        lib.colsum(L(N), 3 * D, P(gqkv), P(bqkv))
        gwqkv = gqkv.t() @ n1
        gn, n1wg, n1bg, unused = gqkv @ wqkv, z(D), z(D), z(D)
        lib.norm_bwd(N, D, P(gn), P(x0), P(n1w), P(s1), P(g), P(n1wg), P(n1bg), P(unused))
        c = lambda t: t.to(gy.dtype)
        return g.view(B, T, D), c(n1wg), c(n1bg), gwqkv, c(bqkv), gwo, c(bo), c(n2wg), c(n2bg), gw1, c(b1), gw2, c(b2)


def enc_layer(l, x):
    """The layer l of model.py applied to x, fused."""
    s, f = l.self_attn, l
    w = torch.cat([s.q_proj.weight, s.k_proj.weight, s.v_proj.weight])
    b = torch.cat([s.q_proj.bias, torch.zeros_like(s.q_proj.bias), s.v_proj.bias])
    n1, n2 = l.self_attn_layer_norm, l.final_layer_norm
    return EncLayer.apply(
        x, n1.weight, n1.bias, w, b, s.out_proj.weight, s.out_proj.bias, n2.weight, n2.bias, f.fc1.weight, f.fc1.bias, f.fc2.weight, f.fc2.bias
    )
