#!/usr/bin/env python3
"""Bert + bert_encoder + predictor + the predictor half of the style vectors.
Durations, F0 (trained in units of 100 Hz, folded into F0_proj at export) and N against the teacher's.
usage: train_prosody.py SECONDS|HH:MM [--device cuda].  Resumes from ckpt/pro.pt; stop any time (SIGTERM saves)."""

import numpy as np, torch, torch.nn as nn, torch.nn.functional as F
from data import Corpus, crop, pad_tokens
from model import load_config
from shared.work import WORK
from trainer import Trainer, arguments, prosody_side

PARTS = "duration bce %.3f l1 %.3f frames | F0 %.3f voiced %.1f Hz | N %.3f | uv err %.3f"


def losses(net, b):
    v, tok, mask, lens, idx, f0, n, dur = b
    s = net["style"](v)
    d = net["predictor"].text_encoder(net["bert_encoder"](net["bert"](tok, mask)), s, lens)
    logits = net["predictor"].durations(d, lens)
    steps = torch.arange(logits.shape[-1], device=tok.device)
    bce = F.binary_cross_entropy_with_logits(logits, (steps < dur[..., None]).float(), reduction="none").sum(-1)
    l1 = (torch.sigmoid(logits).sum(-1) - dur).abs()
    m = mask / mask.sum()
    fp, np_ = net["predictor"].f0n(torch.gather(d, 1, idx[..., None].expand(-1, -1, d.shape[-1])), s)
    t = f0 / 100
    lf, voiced = (fp - t).abs(), (t > 0).float()
    return ((bce * m).sum(), (l1 * m).sum(), lf.mean(), (lf * voiced).sum() / voiced.sum() * 100, (np_ - n).abs().mean(),
            ((fp > 0.1).float() - voiced).abs().mean())


def batch(items, rng, device):
    """The items, cut to the frames of the shortest."""
    tok, mask, lens = pad_tokens(items)
    frames, dur = min(int(i[2].sum()) for i in items), torch.zeros(tok.shape)
    crops = [crop(it, int(rng.integers(0, int(it[2].sum()) - frames + 1)), frames) for it in items]
    for b, it in enumerate(items):
        dur[b, :len(it[2])] = torch.from_numpy(it[2].astype(np.float32))
    idx, f0, n = (torch.from_numpy(np.stack(x)).to(device) for x in list(zip(*crops))[:3])
    return torch.tensor([i[0] for i in items], device=device), tok.to(device), mask[:, 0].to(device), lens, idx, f0, n, dur.to(device)


def main():
    a = arguments(WORK + "/ckpt/pro.pt", batch=16, lr=2e-3).parse_args()
    torch.manual_seed(2)
    cfg = load_config()
    net, ema = (prosody_side(cfg).to(a.device) for _ in range(2))
    with torch.no_grad():
        net["predictor"].F0_proj.bias.fill_(1.0)
        net["predictor"].duration_proj["linear_layer"].bias.copy_(torch.linspace(1.5, -6, cfg["max_dur"]))
    opt = torch.optim.AdamW(net.parameters(), a.lr, betas=(0.9, 0.98), weight_decay=0.01)
    trainer = Trainer(a, net, ema, dict(opt=opt), warm=100, clip=5.0)
    corpus, rng = Corpus(), np.random.default_rng(trainer.step + 5)
    order = np.argsort([it[2].sum() for it in corpus.items])

    def held_out():
        with torch.no_grad():
            found = [[float(x) for x in losses(ema, batch([it], rng, a.device))] for it in corpus.held]
        print("  held-out (ema):", PARTS % tuple(np.mean(found, 0)), flush=True)

    while trainer.goes_on():
        lo = max(0, min(int(rng.integers(len(order))) - 60, len(order) - 120))  # neighbours in length
        near = order[lo:lo + 120]
        items = [corpus.items[j] for j in rng.choice(near, min(a.batch, len(near)), replace=False)]
        L = losses(net, batch(items, rng, a.device))
        trainer.update(L[0] + 0.5 * L[1] + 3 * L[2] + L[4], L, PARTS)
        if trainer.step % 500 == 0:
            held_out()
    trainer.save()
    held_out()


if __name__ == "__main__":
    main()
