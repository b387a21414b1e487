#!/usr/bin/env python3
"""Step 8: end-to-end check from text on 20 unseen sentences, several voices, against the teachers on the same sentences.
usage: 08_eval.py [voice ...]   -> out/eval.json (EVAL_OUT), eval.png (EVAL_PNG)"""

import json, os, subprocess, sys, time
import numpy as np, torch, scipy.signal as ss
from common import ROOT, ids_of, load_export, wav_load, wav_save
from losses import mel_fb
from voices import VOICES

torch.set_num_threads(1)
OUT = ROOT + "/out"
here = os.path.dirname(os.path.abspath(__file__))
vs = sys.argv[1:] or ["aus-female-1", "aus-female-2", "aus-female-6", "aus-male-1", "aus-male-2", "aus-male-3", "oni", "vulcan"]
m, voices = load_export(OUT)
cfg = m.cfg
rows = [l.rstrip("\n").split("\t") for l in open(ROOT + "/eval_phones.tsv")]


def melspec(x):
    z = torch.stft(torch.from_numpy(x.astype(np.float32)), 1024, 240, 1024, torch.hann_window(1024), return_complex=True).abs() * (4 / 1024)
    return torch.log(mel_fb(1024, 24000, 80, "cpu") @ z + 1e-4).numpy().T


def dtw(A, B):
    a, b = A[::2], B[::2]
    D = np.sqrt(((a[:, None] - b[None]) ** 2).mean(-1))
    n, k = D.shape
    C = np.full((n + 1, k + 1), 1e9)
    C[0, 0] = 0
    for i in range(1, n + 1):
        row = C[i - 1]
        cur = C[i]
        best = np.minimum(row[1:], row[:-1])
        for j in range(1, k + 1):
            cur[j] = D[i - 1, j - 1] + min(best[j - 1], cur[j - 1])
    i, j, path = n, k, []
    while i > 0 and j > 0:
        path.append((i - 1, j - 1))
        s = np.argmin((C[i - 1, j - 1], C[i - 1, j], C[i, j - 1]))
        if s == 0:
            i -= 1
            j -= 1
        elif s == 1:
            i -= 1
        else:
            j -= 1
    return path, np.mean([np.abs(a[x] - b[y]).mean() for x, y in path])


def pitch(paths, lo, hi):
    lst = ROOT + "/_pl_%d.txt" % os.getpid()
    open(lst, "w").writelines("%s\t%s\t%g\t%g\n" % (p, p[:-4] + ".f0", lo, hi) for p in paths)
    subprocess.run(["praat", "--run", here + "/pitch.praat", lst], check=True, stdout=subprocess.DEVNULL)
    return [np.array(open(p[:-4] + ".f0").read().split(), float) for p in paths]


import importlib

wer = importlib.import_module("wer")
res = {}
for v in vs:
    od = ROOT + "/eval_model/" + v
    td = ROOT + "/eval_teacher24/" + v
    os.makedirs(od, exist_ok=True)
    os.makedirs(td, exist_ok=True)
    w = VOICES[v].get("warp", 1.0)
    t0 = time.time()
    sec = 0
    dd = []
    for r in rows:
        y, t = m.infer(ids_of(r[2], cfg["vocab"]), voices[v], noise_seed=1)
        y = y.numpy()
        sec += len(y) / 24000
        wav_save("%s/%s.wav" % (od, r[0]), y)
        sr, x = wav_load(ROOT + "/eval_teacher/%s/%s.wav" % (v, r[0]))
        eff = int(round(sr * w / 10) * 10)
        x = ss.resample_poly(x, 2400, eff // 10)
        sp = np.nonzero(np.abs(x) > 0.02 * np.abs(x).max())[0]
        x = x[max(0, sp[0] - 1920) : sp[-1] + 3840]
        en = np.sqrt(np.convolve(x**2, np.ones(240) / 240, "same"))
        x = x * 0.085 / np.sqrt((en[en > 0.1 * np.percentile(en, 95)] ** 2).mean())
        wav_save("%s/%s.wav" % (td, r[0]), x)
        dd.append(abs(len(y) - len(x)) / len(x))
    rt = (time.time() - t0) / sec
    P = lambda d: ["%s/%s.wav" % (d, r[0]) for r in rows]
    fm, ft = pitch(P(od), 60, 420), pitch(P(td), 60, 420)
    md, fa, fb = [], [], []
    for k, r in enumerate(rows):
        a, b = wav_load(P(od)[k])[1], wav_load(P(td)[k])[1]
        path, dist = dtw(melspec(a), melspec(b))
        md.append(dist)
        for i, j in path:
            if 2 * i < len(fm[k]) and 2 * j < len(ft[k]) and fm[k][2 * i] > 0 and ft[k][2 * j] > 0:
                fa.append(fm[k][2 * i])
                fb.append(ft[k][2 * j])
    fa, fb = np.array(fa), np.array(fb)
    wt, n = wer.run(ROOT + "/eval_phones.tsv", td)
    wm, _ = wer.run(ROOT + "/eval_phones.tsv", od)
    res[v] = dict(
        wer_teacher=round(wt, 3),
        wer_model=round(wm, 3),
        words=n,
        mel_L1_dtw=round(float(np.mean(md)), 3),
        f0_corr=round(float(np.corrcoef(fa, fb)[0, 1]), 3),
        f0_median_model=round(float(np.median(fa)), 1),
        f0_median_teacher=round(float(np.median(fb)), 1),
        f0_mae_hz=round(float(np.abs(fa - fb).mean()), 1),
        total_length_error=round(float(np.mean(dd)), 3),
        cpu_rtf_1thread=round(rt, 3),
    )
    print(v, res[v], flush=True)
keys = ["wer_teacher", "wer_model", "mel_L1_dtw", "f0_corr", "f0_mae_hz"]
res["mean"] = {k: round(float(np.mean([res[v][k] for v in vs])), 3) for k in keys}
print("mean", res["mean"])
json.dump(res, open(os.environ.get("EVAL_OUT", OUT + "/eval.json"), "w"), indent=1)
import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

show = vs[:6]
fig, ax = plt.subplots(len(show), 2, figsize=(18, 3 * len(show)))
for i, v in enumerate(show):
    for j, d in enumerate(("eval_teacher24", "eval_model")):
        ax[i, j].specgram(
            wav_load("%s/%s/%s/e%02d.wav" % (ROOT, d, v, i))[1][:72000] + 1e-6, NFFT=1024, noverlap=768, Fs=24000, vmin=-140, vmax=-40
        )
        ax[i, j].set_title("%s %s" % (v, d))
plt.tight_layout()
plt.savefig(os.environ.get("EVAL_PNG", ROOT + "/eval.png"), dpi=55)
