#!/usr/bin/env python3
"""Trains a small Llama-shaped model (RMSNorm, RoPE in the half-split HF form, grouped-query attention, SwiGLU, tied embeddings).

  python3 train.py --data PREFIX --ckpt DIR --total-tokens 16e6                       # pretraining mix, loss on all tokens
  python3 train.py --data PREFIX2 --ckpt DIR --total-tokens 16e6 --other-weight 0      # tuning, loss on assistant tokens

Resumes by itself from DIR/last.pt (model, optimiser, tokens seen). The learning rate follows tokens seen / total tokens over both
phases: warm-up, then flat, then cosine to zero from --decay-from on (0 = plain cosine).
Matrices are trained with Muon (orthogonalised momentum), embeddings and norms with AdamW; --optimizer adamw uses AdamW for all.
--bf16 runs the matrix products in bfloat16 with float32 weights (on a GPU, and on CPUs with AVX512-BF16, where it is ~4x faster).
"""

import argparse, json, math, os, signal, time
import numpy as np, torch, torch.nn as nn, torch.nn.functional as F

CFG = dict(vocab_size=4096,
           hidden_size=256,
           num_hidden_layers=6,
           num_attention_heads=4,
           num_key_value_heads=2,
           intermediate_size=704,
           max_position_embeddings=2048,
           rms_norm_eps=1e-5,
           rope_theta=10000.0)


class Norm(torch.autograd.Function):
    """RMSNorm with its own backward: fewer passes over memory than the composed form"""

    @staticmethod
    def forward(ctx, x, w, eps, dt):
        r = torch.rsqrt((x * x).mean(-1, keepdim=True).add_(eps))
        n = x * r
        ctx.save_for_backward(n, r, w)
        return (n * w).to(dt)

    @staticmethod
    def backward(ctx, g):
        n, r, w = ctx.saved_tensors
        g = g.float()
        gw = torch.einsum('nd,nd->d', g.reshape(-1, g.shape[-1]), n.reshape(-1, n.shape[-1]))
        g = g * w
        return (g - n * (g * n).mean(-1, keepdim=True)).mul_(r), gw, None, None


class RMSNorm(nn.Module):

    def __init__(s, d, eps):
        super().__init__()
        s.weight = nn.Parameter(torch.ones(d))
        s.eps = eps

    def forward(s, x, dt):
        return Norm.apply(x, s.weight, s.eps, dt)


def lin(n, m, std):
    l = nn.Linear(n, m, bias=False)
    nn.init.normal_(l.weight, std=std)
    return l


def mm(x, l):
    return F.linear(x, l.weight.to(x.dtype))


def rope(x, cos, sin):  # x: B T H D, half-split
    a, b = x.chunk(2, -1)
    return torch.cat((a * cos - b * sin, b * cos + a * sin), -1)


class Attn(nn.Module):

    def __init__(s, c):
        super().__init__()
        d = c['hidden_size']
        s.h = c['num_attention_heads']
        s.kv = c['num_key_value_heads']
        s.d = d // s.h
        s.q_proj = lin(d, s.h * s.d, 0.02)
        s.k_proj = lin(d, s.kv * s.d, 0.02)
        s.v_proj = lin(d, s.kv * s.d, 0.02)
        s.o_proj = lin(s.h * s.d, d, 0.02 / math.sqrt(2 * c['num_hidden_layers']))

    def forward(s, x, cos, sin, mask):
        B, T, _ = x.shape
        g = s.h // s.kv
        q = rope(mm(x, s.q_proj).view(B, T, s.h, s.d), cos, sin) * (s.d**-0.5)
        k = rope(mm(x, s.k_proj).view(B, T, s.kv, s.d), cos, sin)
        v = mm(x, s.v_proj).view(B, T, s.kv, s.d)
        # the query heads of one key head are stacked along time
        q = q.view(B, T, s.kv, g, s.d).permute(0, 2, 3, 1, 4).reshape(B * s.kv, g * T, s.d)
        k = k.permute(0, 2, 3, 1).reshape(B * s.kv, s.d, T)
        v = v.permute(0, 2, 1, 3).reshape(B * s.kv, T, s.d)
        w = torch.bmm(q, k).view(B, s.kv * g, T, T).add_(mask).softmax(-1).view(B * s.kv, g * T, T)
        y = torch.bmm(w, v).view(B, s.kv, g, T, s.d).permute(0, 3, 1, 2, 4).reshape(B, T, s.h * s.d)
        return mm(y, s.o_proj)


class MLP(nn.Module):

    def __init__(s, c):
        super().__init__()
        d, i = c['hidden_size'], c['intermediate_size']
        s.gate_proj = lin(d, i, 0.02)
        s.up_proj = lin(d, i, 0.02)
        s.down_proj = lin(i, d, 0.02 / math.sqrt(2 * c['num_hidden_layers']))

    def forward(s, x):
        return mm(F.silu(mm(x, s.gate_proj)) * mm(x, s.up_proj), s.down_proj)


class Block(nn.Module):

    def __init__(s, c):
        super().__init__()
        d, e = c['hidden_size'], c['rms_norm_eps']
        s.self_attn = Attn(c)
        s.mlp = MLP(c)
        s.input_layernorm = RMSNorm(d, e)
        s.post_attention_layernorm = RMSNorm(d, e)

    def forward(s, x, cos, sin, mask, dt):
        x = x + s.self_attn(s.input_layernorm(x, dt), cos, sin, mask)
        return x + s.mlp(s.post_attention_layernorm(x, dt))


class HeadLoss(torch.autograd.Function):
    """Tied output layer and cross-entropy in slices, gradients made on the way (the logits of a whole batch never exist)."""

    @staticmethod
    def forward(ctx, h, W, y, wt, dt, step=1024):
        hb, Wb = h.to(dt), W.to(dt)
        gh = torch.empty_like(hb)
        gW = torch.zeros_like(W)
        loss = torch.zeros((), device=h.device)
        for i in range(0, h.shape[0], step):
            a = hb[i:i + step]
            z = (a @ Wb.t()).float()
            yy = y[i:i + step, None]
            ww = wt[i:i + step, None]
            lse = torch.logsumexp(z, -1, keepdim=True)
            loss += ((lse - z.gather(1, yy)) * ww).sum()
            z.sub_(lse).exp_().scatter_add_(1, yy, torch.full_like(lse, -1)).mul_(ww)
            z = z.to(dt)
            gh[i:i + step] = z @ Wb
            gW += (z.t() @ a).float()
        ctx.save_for_backward(gh, gW)
        return loss

    @staticmethod
    def backward(ctx, g):
        gh, gW = ctx.saved_tensors
        return gh.float() * g, gW * g, None, None, None, None


class Llama(nn.Module):

    def __init__(s, c):
        super().__init__()
        s.c = c
        d = c['hidden_size']
        m = nn.Module()
        s.model = m
        m.embed_tokens = nn.Embedding(c['vocab_size'], d)
        nn.init.normal_(m.embed_tokens.weight, std=0.02)
        m.layers = nn.ModuleList(Block(c) for _ in range(c['num_hidden_layers']))
        m.norm = RMSNorm(d, c['rms_norm_eps'])

    def hidden(s, x, mask, dt):
        T = x.shape[1]
        D = s.c['hidden_size'] // s.c['num_attention_heads']
        f = torch.outer(torch.arange(T, device=x.device).float(), s.c['rope_theta']**(-torch.arange(0, D, 2, device=x.device).float() / D))
        cos, sin = f.cos()[:, None].to(dt), f.sin()[:, None].to(dt)
        h = F.embedding(x, s.model.embed_tokens.weight)
        for b in s.model.layers:
            h = b(h, cos, sin, mask, dt)
        return s.model.norm(h, dt)

    def logits(s, x, dt=torch.float32):
        T = x.shape[1]
        m = torch.full((T, T), float('-inf'), dtype=dt, device=x.device).triu(1)
        return s.hidden(x, m, dt).float() @ s.model.embed_tokens.weight.t()


def doc_mask(x, eot, dt):
    """causal, and only within one document (a document ends with its <|endoftext|>)"""
    B, T = x.shape
    e = (x == eot).long()
    doc = e.cumsum(1) - e
    ok = (doc[:, :, None] == doc[:, None, :]) & torch.ones(T, T, dtype=torch.bool, device=x.device).tril()
    return torch.zeros(B, 1, T, T, dtype=dt, device=x.device).masked_fill_(~ok[:, None], -30000.0)


class Data:
    """packed rows of two lengths; batches of about the same number of tokens, in a fresh random order each epoch"""

    def __init__(s, prefix, batch, seed):
        s.info = json.load(open(prefix + '.json'))
        s.b = {}
        s.batch = batch
        s.rng = np.random.RandomState(seed)
        for T, i in s.info['buckets'].items():
            T = int(T)
            s.b[T] = [np.fromfile(f'{prefix}.{T}.{k}', t).reshape(i['rows'], T) for k, t in (('tok', np.uint16), ('own', np.uint8))]

    def __iter__(s):
        while True:
            l = []
            for T, (a, o) in s.b.items():
                p = s.rng.permutation(len(a))
                n = max(1, s.batch // T)
                l += [(T, p[i:i + n]) for i in range(0, len(p), n)]
            s.rng.shuffle(l)
            for T, rows in l:
                rows = np.sort(rows)
                yield torch.from_numpy(s.b[T][0][rows].astype(np.int64)), torch.from_numpy(s.b[T][1][rows])


def newton_schulz(G, dt, steps=5):
    X = G.to(dt)
    t = X.shape[1] > X.shape[2]
    if t:
        X = X.transpose(1, 2)
    X = X / (X.flatten(1).float().norm(dim=1)[:, None, None] + 1e-7).to(dt)
    for _ in range(steps):
        A = torch.bmm(X, X.transpose(1, 2))
        B = -4.7750 * A + 2.0315 * torch.bmm(A, A)
        X = 3.4445 * X + torch.bmm(B, X)
    return (X.transpose(1, 2) if t else X).float()


class Muon:

    def __init__(s, params, dt, momentum=0.95, wd=0.01):
        s.groups = {}
        s.dt = dt
        s.m = momentum
        s.wd = wd
        for p in params:
            s.groups.setdefault(tuple(p.shape), []).append(p)
        s.buf = {k: torch.zeros(len(v), *k, device=v[0].device) for k, v in s.groups.items()}

    @torch.no_grad()
    def step(s, lr):
        for k, ps in s.groups.items():
            g = torch.stack([p.grad for p in ps])
            b = s.buf[k]
            b.mul_(s.m).add_(g, alpha=1 - s.m)
            u = newton_schulz(g.mul_(1 - s.m).add_(b, alpha=s.m), s.dt)
            sc = max(1, k[0] / k[1])**0.5
            for p, x in zip(ps, u):
                p.mul_(1 - lr * s.wd).add_(x, alpha=-lr * sc)

    def state_dict(s):
        return s.buf

    def load_state_dict(s, d):
        s.buf = {k: v.clone() for k, v in d.items()}


def main():
    ap = argparse.ArgumentParser()
    A = ap.add_argument
    A('--data', required=True, help='prefix written by prepare.py pack')
    A('--ckpt', required=True)
    A('--init', help='exported folder to start from where there is no checkpoint')
    A('--total-tokens', type=float, required=True, help='of all phases together')
    A('--stop-tokens', type=float, help='end this run here')
    A('--stop-at', help='HH:MM (UTC) to save and stop')
    A('--device', default='cpu')
    A('--threads', type=int, default=1)
    A('--bf16', action='store_true')
    A('--fast-cpu', action='store_true', help='fused C kernels (bfloat16; needs gcc)')
    A('--batch', type=int, default=8192, help='tokens per step')
    A('--other-weight', type=float, default=1.0, help='loss weight of tokens that the assistant does not write')
    A('--optimizer', choices=['muon', 'adamw'], default='muon')
    A('--lr-muon', type=float, default=0.02)
    A('--lr', type=float, default=4e-3, help='AdamW')
    A('--warmup', type=float, default=0.01)
    A('--decay-from', type=float, default=0.0)
    A('--min-lr', type=float, default=0.0)
    A('--layers', type=int, default=6)
    A('--hidden', type=int, default=256)
    A('--ffn', type=int, default=704)
    A('--heads', type=int, default=4)
    A('--kv', type=int, default=2)
    A('--vocab', type=int, default=4096)
    A('--seed', type=int, default=1)
    A('--save-every', type=float, default=120, help='seconds')
    a = ap.parse_args()
    torch.set_num_threads(a.threads)
    torch.manual_seed(a.seed)
    os.makedirs(a.ckpt, exist_ok=True)
    dt = torch.bfloat16 if a.bf16 else torch.float32
    c = dict(CFG,
             num_hidden_layers=a.layers,
             hidden_size=a.hidden,
             intermediate_size=a.ffn,
             num_attention_heads=a.heads,
             num_key_value_heads=a.kv,
             vocab_size=a.vocab)
    last = os.path.join(a.ckpt, 'last.pt')
    st = None
    if os.path.exists(last):
        st = torch.load(last, map_location='cpu')
        c = st['cfg']
    elif a.init:
        from export import load

        net = load(a.init)
        c = {k: net.c[k] for k in CFG}
        st = {'model': net.state_dict(), 'seen': 0, 'step': 0}
    net = Llama(c).to(a.device)
    mats = [p for n, p in net.named_parameters() if p.ndim == 2 and 'embed' not in n]
    rest = [p for n, p in net.named_parameters() if p.ndim != 2 or 'embed' in n]
    mu = Muon(mats, dt) if a.optimizer == 'muon' else None
    ad = torch.optim.AdamW([{'params': [p for p in rest if p.ndim == 2] +
                             ([] if mu else mats), 'weight_decay': 0.01}, {'params': [p
                                                                                      for p in rest if p.ndim != 2], 'weight_decay': 0.0}],
                           lr=a.lr,
                           betas=(0.9, 0.97),
                           eps=1e-9)
    seen = step = 0
    if st:
        net.load_state_dict(st['model'])
        seen, step = st['seen'], st['step']
        if 'ad' in st:
            ad.load_state_dict(st['ad'])
        if mu and st.get('mu'):
            mu.load_state_dict({k: v.to(a.device) for k, v in st['mu'].items()})
    if a.fast_cpu:
        import fastcpu

        fast = fastcpu.Fast(net)
        dt = torch.bfloat16
    else:
        fast = None
    data = Data(a.data, a.batch, a.seed + step)
    print(sum(p.numel() for p in net.parameters()),
          'parameters; start at',
          seen,
          'tokens; data',
          json.dumps(data.info['buckets']),
          flush=True)
    stop = []
    [signal.signal(g, lambda *_: stop.append(1)) for g in (signal.SIGTERM, signal.SIGINT)]
    if a.stop_at:
        h, m = map(int, a.stop_at.split(':'))
        g = time.gmtime()
        stop_t = time.time() + (h * 60 + m - g.tm_hour * 60 - g.tm_min) * 60 - g.tm_sec
    else:
        stop_t = float('inf')

    def save():
        torch.save(
            {
                'cfg': c, 'model': net.state_dict(), 'ad': ad.state_dict(), 'mu': mu.state_dict() if mu else None, 'seen': seen,
                'step': step, 'total': a.total_tokens
            }, last + '.tmp')
        os.replace(last + '.tmp', last)

    def lr_at(p):
        w = min(1.0, p / a.warmup) if a.warmup else 1.0
        q = max(0.0, min(1.0, (p - a.decay_from) / (1 - a.decay_from)))
        return w * (a.min_lr + (1 - a.min_lr) * 0.5 * (1 + math.cos(math.pi * q)))

    tl = ts = time.time()
    n0 = seen
    acc = []
    for x, own in data:
        x, own = x.to(a.device), own.to(a.device)
        s = lr_at(seen / a.total_tokens)
        ow = F.pad(own[:, 1:], (0, 1)).reshape(-1)
        wt = (ow == 1).float() + (ow == 2).float() * a.other_weight
        y = F.pad(x[:, 1:], (0, 1)).reshape(-1)
        if fast:
            loss = fast(x, y, wt)
        else:
            keep = wt > 0
            h = net.hidden(x, doc_mask(x, 0, dt), dt).reshape(-1, c['hidden_size'])
            if not bool(keep.all()):
                h, y, wt = h[keep], y[keep], wt[keep]
            loss = HeadLoss.apply(h, net.model.embed_tokens.weight, y, wt, dt) / wt.sum()
            loss.backward()
        for g in ad.param_groups:
            g['lr'] = a.lr * s
        torch.nn.utils.clip_grad_norm_(rest, 1.0)
        ad.step()
        if mu:
            mu.step(a.lr_muon * s)
        for p in net.parameters():
            p.grad = None
        seen += int((own > 0).sum())
        step += 1
        acc.append(float(loss))
        now = time.time()
        if step % 20 == 0:
            print(
                f'{time.strftime("%H:%M:%S", time.gmtime())} step {step} tokens {seen / 1e6:.3f}M loss {np.mean(acc):.4f} lr {s:.3f} {(seen - n0) / (now - tl):.0f} tok/s',
                flush=True)
            tl, n0, acc = now, seen, []
        done = seen >= a.total_tokens or (a.stop_tokens and seen >= a.stop_tokens) or stop or now > stop_t
        if now - ts > a.save_every or done:
            save()
            ts = now
        if done:
            break
    print('saved at', seen, 'tokens,', step, 'steps', flush=True)


if __name__ == '__main__':
    main()
