#!/usr/bin/env python3
"""Counts multiply-adds x 2 of one inference per second of audio, by component."""

import torch, torch.nn as nn, collections, json
from common import ROOT, ids_of, load_export

torch.set_num_threads(1)
m, voices = load_export()
cfg = m.cfg
acc = collections.Counter()


def hook(name):
    part = ".".join(name.split(".")[:2]) if name.startswith("decoder") else name.split(".")[0]

    def f(mod, i, o):
        x = i[0]
        if isinstance(mod, nn.Conv1d):
            acc[part] += 2 * o.numel() * mod.in_channels // mod.groups * mod.kernel_size[0]
        elif isinstance(mod, nn.ConvTranspose1d):
            acc[part] += 2 * x.numel() * mod.out_channels // mod.groups * mod.kernel_size[0]
        elif isinstance(mod, nn.Linear):
            acc[part] += 2 * o.numel() * mod.in_features
        elif isinstance(mod, nn.LSTM):
            acc[part] += 2 * 2 * x.shape[0] * x.shape[1] * 4 * mod.hidden_size * (mod.input_size + mod.hidden_size)

    return f


for n, x in m.named_modules():
    if isinstance(x, (nn.Conv1d, nn.ConvTranspose1d, nn.Linear, nn.LSTM)):
        x.register_forward_hook(hook(n))
row = [l.rstrip("\n").split("\t") for l in open(ROOT + "/eval_phones.tsv")][0]
y, t = m.infer(ids_of(row[2], cfg["vocab"]), voices["aus-female-1"], noise_seed=1)
s = len(y) / 24000
tot = sum(acc.values()) / s / 1e9
for k, v in acc.most_common():
    print("%-24s %.3f GFLOP per audio second" % (k, v / s / 1e9))
print("total %.3f GFLOP per audio second (%.2f s of audio)" % (tot, s))
json.dump(dict(total=round(tot, 3), parts={k: round(v / s / 1e9, 3) for k, v in acc.items()}), open(ROOT + "/out/flops.json", "w"))
