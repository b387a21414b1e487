"""Loading of the packed corpus (data/pack/*.npz)."""

import os
import numpy as np, torch
import paths  # noqa: F401 (training/shared)
from shared.work import WORK
from voices import NAMES

HELD = 3  # last utterances of every voice are never trained on
FRAME = 480  # samples


class Corpus:
    def __init__(self, pack=WORK + "/data/pack", names=NAMES):
        self.items = []  # (voice index, tok, dur, f0, n, wave)
        self.by_voice, self.held = {}, []
        for v, name in enumerate(NAMES):
            p = os.path.join(pack, name + ".npz")
            if name not in names or not os.path.exists(p):
                continue
            z = np.load(p)
            w, t, d, f, n = (np.split(z[k], np.cumsum(z[k + "_len"])[:-1]) for k in ("wave", "tok", "dur", "f0", "n"))
            for i in range(len(w)):
                it = (v, t[i].astype(np.int64), d[i].astype(np.int64), f[i], n[i], w[i])
                if i >= len(w) - HELD:
                    self.held.append(it)
                    continue
                self.by_voice.setdefault(v, []).append(len(self.items))
                self.items.append(it)
        self.voices = sorted(self.by_voice)

    def pick(self, rng, min_frames=0):
        while True:
            it = self.items[rng.choice(self.by_voice[self.voices[rng.integers(len(self.voices))]])]
            if it[2].sum() >= min_frames:
                return it


def pad_tokens(its):
    T = max(len(i[1]) for i in its)
    tok = torch.zeros(len(its), T, dtype=torch.long)
    mask = torch.zeros(len(its), 1, T)
    for b, i in enumerate(its):
        tok[b, : len(i[1])] = torch.from_numpy(i[1])
        mask[b, :, : len(i[1])] = 1
    return tok, mask, torch.tensor([len(i[1]) for i in its])


def crop(item, start, frames):
    """-> of frames from `start` on: the token of each, F0 and energy (two values a frame), samples"""
    _, _, dur, f0, n, wave = item
    end = start + frames
    samples = wave[FRAME * start:FRAME * end].astype(np.float32) / 32767
    return np.repeat(np.arange(len(dur)), dur)[start:end], f0[2 * start:2 * end], n[2 * start:2 * end], samples
