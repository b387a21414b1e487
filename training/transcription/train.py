#!/usr/bin/env python3
"""Step 4: train. Wall-clock schedule so that it always ends on time; resumes from ckpt/last.pt.
usage: train.py --end HH:MM (UTC) [--d 256 --enc 4 --dec 2] [--device cuda] [--tokens-per-step ...]"""

import os, sys, time, math, argparse, datetime, random, signal
import torch, torch.nn.functional as F
import paths  # noqa: F401 (enters the work folder)
import tok, data, model as M

ap = argparse.ArgumentParser()
A = ap.add_argument
A('--end', default='')
A('--hours', type=float, default=1.0)
A('--d', type=int, default=256)
A('--enc', type=int, default=4)
A('--dec', type=int, default=2)
A('--heads', type=int, default=4)
A('--lr', type=float, default=1.2e-3)
A('--device', default='cpu')
A('--frames', type=int, default=6400, help='mel frames per step')
A('--bf16', type=int, default=1)
A('--bench', type=int, default=0)
A('--ckpt', default='ckpt')
A('--init', default='')
A('--text_until', type=float, default=0.8)
A('--text_every', type=int, default=1)
A('--text_steps', type=int, default=1)
a = ap.parse_args()
torch.set_num_threads(1 if a.device == 'cpu' else 8)
torch.set_flush_denormal(True)
os.makedirs(a.ckpt, exist_ok=True)
if a.end:
    n = datetime.datetime.utcnow()
    h, m = map(int, a.end.split(':'))
    END = time.time() + (n.replace(hour=h, minute=m, second=0) - n).total_seconds()
else:
    END = time.time() + a.hours * 3600
tk = tok.Tok()
cfg = M.config(a.d, a.heads, a.enc, a.dec, 4 * a.d, len(tk.vocab), dict(eot=tk.eot, sot=tk.sot))
net = M.Whisper(cfg, len(data.PHONES), tk.t0).to(a.device)
net.train()
print('parameters', sum(p.numel() for p in net.model.parameters()) / 1e6, 'M', flush=True)
dec = [p for p in net.parameters() if p.requires_grad and p.ndim >= 2]
nod = [p for p in net.parameters() if p.requires_grad and p.ndim < 2]
opt = torch.optim.AdamW(
    [dict(params=dec, weight_decay=0.01), dict(params=nod, weight_decay=0.0)], lr=a.lr, betas=(0.9, 0.98), eps=1e-8, foreach=True
)
step, START, used, WARM = 0, time.time(), 0.0, 0
last = a.ckpt + '/last.pt'
if os.path.exists(last) and not a.bench:
    s = torch.load(last, map_location=a.device)
    print(net.load_state_dict(s['net'], strict=False))
    try:
        opt.load_state_dict(s['opt'])
    except (ValueError, TypeError, AttributeError) as e:
        print('fresh optimiser:', e)
        WARM = s['step']
    step = s['step']
    START = time.time() - s.get('used', 0)
    print('resumed at step', step)
elif a.init:
    print(net.load_state_dict(torch.load(a.init, map_location=a.device)['net'], strict=False))


def save():
    torch.save(dict(net=net.state_dict(), opt=opt.state_dict(), step=step, used=time.time() - START, cfg=cfg), last + '.tmp')
    os.replace(last + '.tmp', last)


signal.signal(signal.SIGTERM, lambda *_: (save(), sys.exit(0)))
store = data.Store()
S = data.Sampler(store, tk, int(time.time()))
S.load_text()
S.w = lambda v: 0.4 if v.startswith('espeak') else 0.5 if 'kal' in v else 1.0  # short budget: favour the natural-sounding voices
t_acc = dict(l=0.0, n=0, s=0.0)
rr = random.Random(step)
print(len(store.utts), 'utts', sum(u[4] for u in store.utts) / 360000, 'h', len(store.real), 'real', flush=True)


def corrupt(x, p):
    """Replace a share p of the decoder's input text tokens at random, so that it listens instead of reciting (exposure bias)."""
    m = (torch.rand(x.shape, device=x.device) < p) & (x < tk.eot)
    return torch.where(m, torch.randint(256, tk.eot, x.shape, device=x.device), x)


def plan(prog):
    """(T frames, batch, utterances per window): short windows first, longer and fuller windows later, full 30 s at the end."""
    fr = a.frames
    u = rr.random()
    if prog < 0.08:
        T = rr.choice([160, 220, 280])
        return T, fr // T, 1
    if prog < 0.30:
        T = rr.choice([200, 240, 300, 360, 440])
        return T, int(fr * 0.7) // T, 1
    if prog > 0.85 and u < 0.07:
        return 3000, max(2, fr // 3000), rr.choice([1, 1, 2, 3, 5, 8, 99])
    if prog > 0.30 and u > (0.95 if prog < 0.8 else 0.93):
        T = rr.choice([800, 1000, 1400, 1800])
        return T, max(2, fr // T), rr.choice([1, 2, 3, 4, 6])
    T = rr.choice([160, 200, 240, 280, 320, 380, 460] if prog < 0.8 else [180, 240, 300, 360, 440, 540])
    return T, fr // T, 1 if rr.random() < 0.85 else 2


acc = dict(ce=0.0, ctc=0.0, ga=0.0, n=0, hit=0.0, tot=0.0)
t_log = t_save = t_ref = time.time()
tb = td = 0.0
aud = 0.0
while True:
    now = time.time()
    prog = min(1.0, (now - START) / (END - START))
    if now >= END or (a.bench and step >= a.bench):
        break
    lr = (
        a.lr
        * min(1, (step - WARM + 1) / (80 if WARM else 300))
        * (1 if prog < 0.15 else max(0.02, 0.5 * (1 + math.cos(math.pi * (prog - 0.15) / 0.85)) ** 1.0))
    )
    for g in opt.param_groups:
        g['lr'] = lr
    T, B, k = plan(prog)
    t0 = time.time()
    stren = 0.4
    mel, x, y, ph, pl, off, gd = S.batch(T, B, k, stren, 0.1 if prog < 0.35 else 0.2, 0.1 if prog < 0.33 else 0.2)
    td += time.time() - t0
    aud += B * T / 100
    to = lambda v: torch.from_numpy(v).to(a.device)
    mel, x, y, ph, pl, gd = map(to, (mel, x, y, ph, pl, gd))
    p = 0.0
    pc = (0.25 if rr.random() < 0.8 else 0.0) if prog < 0.82 else 0.1
    with torch.autocast('cpu' if a.device == 'cpu' else 'cuda', dtype=torch.bfloat16, enabled=bool(a.bf16)):
        enc = net.model.encoder(mel, off, p)
        e = net.emb()
        logits = net.decode(corrupt(x, pc), enc, p=p, e=e)
        cl = net.ctc(enc)
    logits = logits.float().flatten(0, 1)
    m = y.flatten() != -100
    ce = F.cross_entropy(logits[m], y.flatten()[m], label_smoothing=0.05)
    wc = 0.8 if prog < 0.15 else 0.5 if prog < 0.5 else 0.3
    lp = cl.float().log_softmax(-1).transpose(0, 1)
    ctc = F.ctc_loss(lp, ph, torch.full((B,), lp.shape[0], dtype=torch.long), pl, zero_infinity=True, reduction='sum') / max(
        1, int(pl.sum())
    )
    wg = 1.0 if prog < 0.4 else 0.3 if prog < 0.8 else 0.05  # guided attention on half of the cross-attention heads
    gt = gd[..., 0] >= 0
    pos = torch.arange(lp.shape[0], device=x.device)[None, None]
    W = 1 - torch.exp(-0.5 * ((pos - gd[..., :1]) / gd[..., 1:]) ** 2)
    W = (W * gt[..., None])[:, None]
    ga = sum((l.encoder_attn.att[:, :2].float() * W).sum() for l in net.model.decoder.layers) / (
        2 * len(net.model.decoder.layers) * gt.sum().clamp(min=1)
    )
    loss = ce + wc * ctc + wg * ga
    opt.zero_grad(set_to_none=True)
    loss.backward()
    gn = torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
    if torch.isfinite(gn):
        opt.step()
    with torch.no_grad():
        hit0 = (logits[m].argmax(-1) == y.flatten()[m]).float().sum().item()
        tot0 = m.sum().item()
    if prog < a.text_until and step % a.text_every == 0:  # text-only decoder steps
        for _ in range(a.text_steps):
            tt = time.time()
            p_, x, y, gd = map(to, S.text_batch(32))
            with torch.autocast('cpu' if a.device == 'cpu' else 'cuda', dtype=torch.bfloat16, enabled=bool(a.bf16)):
                pe = net.phone_enc(p_, net.model.encoder.embed_positions.weight)
                e = net.emb()
                logits = net.decode(corrupt(x, pc), pe, p=0.05, e=e)
                cl = net.ctc(pe)
            m2 = y.flatten() != -100
            l2 = F.cross_entropy(logits.float().flatten(0, 1)[m2], y.flatten()[m2], label_smoothing=0.05)
            anchor = F.cross_entropy(cl.float().flatten(0, 1), p_.flatten())  # keep the stand-in states in the encoder's phone space
            gt = gd[..., 0] >= 0
            pos = torch.arange(p_.shape[1], device=x.device)[None, None]
            W = 1 - torch.exp(-0.5 * ((pos - gd[..., :1]) / gd[..., 1:]) ** 2)
            W = (W * gt[..., None])[:, None]
            ga2 = sum((l.encoder_attn.att[:, :2].float() * W).sum() for l in net.model.decoder.layers) / (
                2 * len(net.model.decoder.layers) * gt.sum().clamp(min=1)
            )
            opt.zero_grad(set_to_none=True)
            (l2 + 0.1 * anchor + 0.3 * ga2).backward()
            gn2 = torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
            if torch.isfinite(gn2):
                opt.step()
            t_acc['l'] += l2.item()
            t_acc['n'] += 1
            t_acc['s'] += time.time() - tt
        if t_acc['n'] >= 100:
            print(f"   text-only ce {t_acc['l'] / t_acc['n']:.3f} {t_acc['s'] / t_acc['n']:.3f} s/step", flush=True)
            t_acc = dict(l=0.0, n=0, s=0.0)
    step += 1
    acc['ce'] += ce.item()
    acc['ctc'] += ctc.item()
    acc['ga'] += ga.item()
    acc['n'] += 1
    with torch.no_grad():
        acc['hit'] += hit0
        acc['tot'] += tot0
    if step % 50 == 0:
        el = time.time() - t_log
        print(
            f"{datetime.datetime.utcnow():%H:%M:%S} step {step} prog {prog:.3f} lr {lr:.2e} ce {acc['ce'] / acc['n']:.3f} ctc/phone {acc['ctc'] / acc['n']:.3f} ga {acc['ga'] / acc['n']:.3f} acc {acc['hit'] / acc['tot']:.3f} gn {gn:.2f} | {el / acc['n']:.3f} s/step, data {td / acc['n']:.3f}, {aud / el:.0f}x rt",
            flush=True,
        )
        acc = dict(ce=0.0, ctc=0.0, ga=0.0, n=0, hit=0.0, tot=0.0)
        td = aud = 0.0
        t_log = time.time()
    if not a.bench and time.time() - t_save > 120:
        save()
        t_save = time.time()
    if time.time() - t_ref > 240:
        store.refresh()
        S.load_text()
        t_ref = time.time()
        print('store', len(store.utts), flush=True)
if not a.bench:
    save()
    print('done', step)
