"""Small multi-resolution spectrogram discriminators (least-squares GAN + feature matching)."""

import torch, torch.nn as nn, torch.nn.functional as F
from torch.nn.utils import weight_norm
from losses import stft_mag


class SpecDisc(nn.Module):
    def __init__(self, n, hop):
        super().__init__()
        self.n, self.hop = n, hop
        c = lambda i, o, k, s: weight_norm(nn.Conv2d(i, o, k, s, ((k[0] - 1) // 2, (k[1] - 1) // 2)))
        self.convs = nn.ModuleList(
            [c(1, 16, (7, 5), (4, 1)), c(16, 32, (5, 5), (4, 2)), c(32, 48, (5, 3), (2, 2)), c(48, 48, (3, 3), (1, 1))]
        )
        self.out = c(48, 1, (3, 3), (1, 1))

    def forward(self, x):
        h = torch.log(stft_mag(x, self.n, self.hop) * (4 / self.n) + 1e-4).unsqueeze(1) * 0.4 + 2.0
        fm = []
        for c in self.convs:
            h = F.leaky_relu(c(h), 0.1)
            fm.append(h)
        return self.out(h), fm


class MultiResDisc(nn.Module):
    def __init__(self):
        super().__init__()
        self.d = nn.ModuleList([SpecDisc(480, 120), SpecDisc(1024, 240), SpecDisc(2048, 480)])

    def forward(self, x):
        return [d(x) for d in self.d]


def d_loss(disc, fake, real):
    return sum((r - 1).square().mean() + f.square().mean() for (r, _), (f, _) in zip(disc(real), disc(fake))) / 3


def g_loss(disc, fake, real):
    for p in disc.parameters():
        p.requires_grad_(False)
    with torch.no_grad():
        R = disc(real)
    G = disc(fake)
    for p in disc.parameters():
        p.requires_grad_(True)
    adv = sum((f - 1).square().mean() for f, _ in G) / 3
    fm = sum((a - b).abs().mean() / (b.abs().mean() + 1e-3) for (_, A), (_, Bm) in zip(G, R) for a, b in zip(A, Bm)) / 12
    return adv, fm
