"""CPU-only fused AdaIN + snake (fastops.c), f32 or bf16; plain torch where there is no gcc or the tensors live elsewhere."""

import shutil, torch
import paths
from shared import native
from shared.native import P

lib = native.load(paths.HERE + "/fastops.c") if shutil.which("gcc") else None
LETTER = {torch.float32: "f", torch.bfloat16: "h"}


class AdainSnake(torch.autograd.Function):
    """g is the instance norm's total scale (1 + gamma) [B, C]; the output has `dtype`."""

    @staticmethod
    def forward(ctx, x, g, b, alpha, dtype):
        x, g, b, al = x.contiguous(), g.float().contiguous(), b.float().contiguous(), alpha.contiguous()
        B, C, T = x.shape
        out = torch.empty(x.shape, dtype=dtype)
        m, r = torch.empty(B * C), torch.empty(B * C)
        ctx.kind = "adain_snake_" + LETTER[x.dtype] + LETTER[dtype]
        getattr(lib, ctx.kind + "_fwd")(P(x), P(g), P(b), P(al), P(out), P(m), P(r), B, C, T)
        ctx.save_for_backward(x, g, b, al, m, r)
        ctx.dtype = dtype
        return out

    @staticmethod
    def backward(ctx, d):
        x, g, b, al, m, r = ctx.saved_tensors
        B, C, T = x.shape
        d = d.to(ctx.dtype).contiguous()
        dx, dg, db, da, tmp = torch.empty_like(x), torch.empty_like(g), torch.empty_like(b), torch.zeros_like(al), torch.empty(T)
        getattr(lib, ctx.kind + "_bwd")(P(d), P(x), P(g), P(b), P(al), P(m), P(r), P(dx), P(dg), P(db), P(da), P(tmp), B, C, T)
        return dx, dg, db, da, None


def adain_snake(norm, x, s, alpha, dtype=torch.float32):
    """snake(AdaIN(x, s)) with snake(y) = y + sin(alpha y)^2 / alpha, in `dtype`."""
    if lib is None or x.device.type != "cpu":
        t = norm(x.float(), s)
        return (t + torch.sin(alpha * t).square() / alpha).to(dtype)
    if x.dtype == torch.bfloat16 and dtype == torch.float32:
        x = x.float()
    h = norm.fc(s)
    C = x.shape[1]
    return AdainSnake.apply(x, 1 + h[:, :C], h[:, C:], alpha, dtype)
