#!/usr/bin/env python3
"""Bert + bert_encoder + predictor + the predictor half of the style vectors.
Durations, F0 (trained in units of 100 Hz, folded into F0_proj at export) and N against the teacher's.
usage: train_prosody.py SECONDS [--device cuda].  Resumes from ckpt/pro.pt."""

import os, time, math, argparse
import numpy as np, torch, torch.nn as nn, torch.nn.functional as F
from data import NAMES, ROOT, Corpus, pad_tokens
from model import Model, load_config

ap = argparse.ArgumentParser()
ap.add_argument("seconds", type=float)
ap.add_argument("--device", default="cpu")
ap.add_argument("--batch", type=int, default=16)
ap.add_argument("--lr", type=float, default=2e-3)
ap.add_argument("--lr_end", type=float, default=1e-4)
ap.add_argument("--threads", type=int, default=1)
ap.add_argument("--ckpt", default=ROOT + "/ckpt/pro.pt")
a = ap.parse_args()
torch.set_num_threads(a.threads)
dev = a.device
cfg = load_config(ROOT + "/config.json")
torch.manual_seed(2)


def make():
    m = Model(cfg)
    return nn.ModuleDict(
        dict(bert=m.bert, bert_encoder=m.bert_encoder, predictor=m.predictor, style=nn.Embedding(len(NAMES), cfg["style_dim"]))).to(dev)


net, ema = make(), make().eval()
with torch.no_grad():
    net["predictor"].F0_proj.bias.fill_(1.0)
    net["predictor"].duration_proj.linear_layer.bias.copy_(torch.linspace(1.5, -6, cfg["max_dur"]))
ema.load_state_dict(net.state_dict())
opt = torch.optim.AdamW(net.parameters(), a.lr, betas=(0.9, 0.98), weight_decay=0.01)
step0 = 0
if os.path.exists(a.ckpt):
    ck = torch.load(a.ckpt, map_location=dev)
    net.load_state_dict(ck["net"])
    ema.load_state_dict(ck["ema"])
    "opt" in ck and opt.load_state_dict(ck["opt"])
    step0 = ck["step"]
corpus = Corpus()
rng = np.random.default_rng(step0 + 5)
order = np.argsort([it[2].sum() for it in corpus.items])
pos = np.empty(len(order), int)
pos[order] = np.arange(len(order))


def batch(its):
    tok, mask, lens = pad_tokens(its)
    C = min(int(i[2].sum()) for i in its)
    idx, f0, n, dur = [], [], [], torch.zeros(tok.shape)
    for b, it in enumerate(its):
        s = int(rng.integers(0, int(it[2].sum()) - C + 1))
        idx.append(np.repeat(np.arange(len(it[2])), it[2])[s:s + C])
        f0.append(it[3][2 * s:2 * (s + C)])
        n.append(it[4][2 * s:2 * (s + C)])
        dur[b, :len(it[2])] = torch.from_numpy(it[2].astype(np.float32))
    t = lambda l: torch.from_numpy(np.stack(l)).to(dev)
    return torch.tensor([i[0] for i in its], device=dev), tok.to(dev), mask[:, 0].to(dev), lens, t(idx), t(f0), t(n), dur.to(dev)


def losses(net, b):
    v, tok, mask, lens, idx, f0, n, dur = b
    s = net["style"](v)
    d = net["predictor"].text_encoder(net["bert_encoder"](net["bert"](tok, mask)), s, lens)
    lg = net["predictor"].durations(d, lens)
    steps = torch.arange(lg.shape[-1], device=dev)
    bce = F.binary_cross_entropy_with_logits(lg, (steps < dur[..., None]).float(), reduction="none").sum(-1)
    l1 = (torch.sigmoid(lg).sum(-1) - dur).abs()
    m = mask / mask.sum()
    en = torch.gather(d, 1, idx[..., None].expand(-1, -1, d.shape[-1]))
    fp, np_ = net["predictor"].f0n(en, s)
    t = f0 / 100
    lf = (fp - t).abs()
    voiced = (t > 0).float()
    return ((bce * m).sum(), (l1 * m).sum(), lf.mean(), (lf * voiced).sum() / voiced.sum() * 100, (np_ - n).abs().mean(),
            (((fp > 0.1).float() - voiced).abs()).mean())


def save(step):
    os.makedirs(os.path.dirname(a.ckpt), exist_ok=True)
    torch.save(dict(net=net.state_dict(), ema=ema.state_dict(), opt=opt.state_dict(), step=step), a.ckpt + ".tmp")
    os.replace(a.ckpt + ".tmp", a.ckpt)


def evaluate():
    with torch.no_grad():
        return np.mean([[float(x) for x in losses(ema, batch([it]))] for it in corpus.held], 0)


t0 = last = time.time()
step = step0
acc = []
while time.time() - t0 < a.seconds:
    prog = (time.time() - t0) / a.seconds
    for gr in opt.param_groups:
        gr["lr"] = min((step - step0 + 1) / 100, 1) * (a.lr_end + 0.5 * (a.lr - a.lr_end) * (1 + math.cos(math.pi * prog)))
    net.train()
    c = int(rng.integers(len(order)))
    lo = max(0, min(c - 60, len(order) - 120))  # neighbours in length
    b = batch([corpus.items[order[j]] for j in rng.choice(np.arange(lo, lo + 120), a.batch, replace=False)])
    L = losses(net, b)
    loss = L[0] + 0.5 * L[1] + 3 * L[2] + L[4]
    opt.zero_grad()
    loss.backward()
    gn = nn.utils.clip_grad_norm_(net.parameters(), 5.0)
    if torch.isfinite(gn):
        opt.step()
    step += 1
    with torch.no_grad():
        for p, q in zip(ema.parameters(), net.parameters()):
            p.lerp_(q, 1 - min(0.998, (step + 1) / (step + 50)))
    acc.append([float(x) for x in L])
    if step % 100 == 0:
        m = np.mean(acc, 0)
        acc = []
        print("step %d %.0f s  dur bce %.3f l1 %.3f frames | F0 %.3f voiced %.1f Hz | N %.3f | uv err %.3f" % (step, time.time() - t0, *m),
              flush=True)
    if step % 500 == 0:
        print("  held-out (ema): dur bce %.3f l1 %.3f | F0 %.3f voiced %.1f Hz | N %.3f | uv err %.3f" % tuple(evaluate()), flush=True)
    if time.time() - last > 100:
        save(step)
        last = time.time()
save(step)
print("  held-out (ema): dur bce %.3f l1 %.3f | F0 %.3f voiced %.1f Hz | N %.3f | uv err %.3f" % tuple(evaluate()), flush=True)
