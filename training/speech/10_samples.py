#!/usr/bin/env python3
"""Step 10: ten sample wavs (out/samples) and one line per voice of measured mean F0 (out/voices_report.json)."""

import json, os
import torch
from voices import NAMES
from common import ROOT, ids_of, load_export, wav_save

torch.set_num_threads(1)
m, voices = load_export()
cfg = m.cfg
OUT = ROOT + "/out"
os.makedirs(OUT + "/samples", exist_ok=True)
rows = [l.rstrip("\n").split("\t") for l in open(ROOT + "/eval_phones.tsv")]
pick = ["aus-female-1", "aus-female-2", "aus-female-5", "aus-male-1", "aus-male-2", "aus-male-6", "gaius", "_gantry", "oni", "vulcan"]
for k, v in enumerate(pick):
    y, _ = m.infer(ids_of(rows[k][2], cfg["vocab"]), voices[v], noise_seed=1)
    wav_save("%s/samples/%02d_%s.wav" % (OUT, k, v), y.numpy())
rep = {}
for v in NAMES:
    y, t = m.infer(ids_of(rows[4][2], cfg["vocab"]), voices[v], noise_seed=1)
    f = t["F0"][0]
    f = f[f > 50]
    z = torch.stft(y, 1024, 256, 1024, torch.hann_window(1024), return_complex=True).abs().mean(1)
    fr = torch.arange(513) * 24000 / 1024
    rep[v] = dict(f0_median=round(float(f.median()), 1),
                  seconds=round(len(y) / 24000, 2),
                  spectral_centroid_hz=round(float((z * fr).sum() / z.sum())),
                  rms=round(float(y.square().mean().sqrt()), 4))
    print(v, rep[v])
json.dump(rep, open(OUT + "/voices_report.json", "w"), indent=1)
