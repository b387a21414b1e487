#!/usr/bin/env python3
"""Measures what evaluate.ts spoke through Parley: word errors by pocketsphinx beside the teachers' and our own recogniser's,
duration and F0 correlation with the teachers on the same 100 sentences, mean F0 of every voice, how far every two voices are apart, spectrograms.
usage: measure.py OUT TEACHER_FOLDER   -> a Markdown report on stdout, OUT/measured.json, OUT/spectrograms.png

Speaker distance: cosine distance of mean MFCCs (1 to 19, standardised over all clips) on the same sentences, less the sentence's mean. Two
voices count as separable when every clip of either is nearer to the other clips of its own voice than to those of the other voice; mean log
F0, its spread and the tempo are three more dimensions there.
"""

import json, os, subprocess, sys
import numpy as np, scipy.fft, torch
from common import wav_load
from losses import align, logmel
from voices import NAMES
import wer

HERE = os.path.dirname(os.path.abspath(__file__))
OUT, TEACHER = sys.argv[1:3]
HOP = 240
rows = [l.rstrip("\n").split("\t")[:2] for l in open(HERE + "/eval_texts.tsv")]
pairs = [(f"{OUT}/sentences/{i}.wav", f"{TEACHER}/{i}.wav", NAMES[k % len(NAMES)]) for k, (i, _) in enumerate(rows)]


def pitch(paths):
    """F0 in Hz every 10 ms, 0 where unvoiced."""
    outs = [f"{OUT}/f0/{k}.f0" for k in range(len(paths))]
    os.makedirs(OUT + "/f0", exist_ok=True)
    with open(OUT + "/f0/list.txt", "w") as f:
        f.writelines(f"{os.path.abspath(p)}\t{os.path.abspath(o)}\t60\t420\n" for p, o in zip(paths, outs))
    subprocess.run(["praat", "--run", HERE + "/pitch.praat", os.path.abspath(OUT + "/f0/list.txt")], check=True, stdout=subprocess.DEVNULL)
    return [np.array(open(o).read().split(), float) for o in outs]


def spoken(x):
    """Seconds from the first to the last sound."""
    loud = np.nonzero(np.abs(x) > 0.02 * np.abs(x).max())[0]
    return (loud[-1] - loud[0]) / 24000


def sphinx(which, same_silence):
    dec, err, tot = wer.make(), 0, 0
    per = {n: [0, 0] for n in NAMES}
    for (_, text), pair in zip(rows, pairs):
        ref = wer.norm(text)
        e = wer.edit(ref, wer.norm(wer.recog(dec, pair[which], same_silence)))
        err, tot = err + e, tot + len(ref)
        per[pair[2]][0] += e
        per[pair[2]][1] += len(ref)
    return err / tot, {k: e / n for k, (e, n) in per.items()}


def prosody():
    """-> per voice: mean F0, the teacher's, F0 correlation on aligned voiced frames; over all: correlation and mean error of the lengths"""
    fm, ft = pitch([p[0] for p in pairs]), pitch([p[1] for p in pairs])
    res, lengths = {n: [[], []] for n in NAMES}, []
    for (m, t, n), a, b in zip(pairs, fm, ft):
        x, y = wav_load(m)[1], wav_load(t)[1]
        lengths.append((spoken(x), spoken(y)))
        for i, j in align(logmel(x, HOP), logmel(y, HOP)):
            if i < len(a) and j < len(b) and a[i] > 0 and b[j] > 0:
                res[n][0].append(a[i])
                res[n][1].append(b[j])
    table = {n: (np.mean(u), np.mean(v), np.corrcoef(u, v)[0, 1]) for n, (u, v) in res.items()}
    allm, allt = (np.concatenate([np.log(r[k]) for r in res.values()]) for k in (0, 1))
    l = np.array(lengths)
    return table, np.corrcoef(allm, allt)[0, 1], np.corrcoef(l.T)[0, 1], np.mean(np.abs(l[:, 0] - l[:, 1]) / l[:, 1])


def voices():
    """-> mean F0 of each voice on the same sentences, cosine distances of mean MFCCs, pairs that are not separable"""
    clips = [(n, f"{OUT}/voices/{n}/{f}") for n in NAMES for f in sorted(os.listdir(f"{OUT}/voices/{n}"))]
    logs = [np.log(x[x > 0]) for x in pitch([c[1] for c in clips])]
    f0 = [np.exp(x.mean()) for x in logs]
    feats, extra = [], []
    for (_, path), lf in zip(clips, logs):
        x = wav_load(path)[1]
        mel = logmel(x, HOP)
        extra.append((lf.mean(), np.log(lf.std()), np.log(spoken(x))))
        loud = mel.mean(1) > mel.mean(1).max() - 4
        feats.append(scipy.fft.dct(mel[loud], norm="ortho")[:, 1:20].mean(0))
    text = np.array([os.path.basename(path) for _, path in clips])

    def standard(z):
        z = np.array(z)
        for t in set(text):
            z[text == t] -= z[text == t].mean(0)
        return z / z.std(0)

    X = standard(feats)
    Y = np.c_[X, 3 * standard(extra)]
    own = np.array([NAMES.index(n) for n, _ in clips])
    centre = np.array([X[own == k].mean(0) for k in range(len(NAMES))])
    unit = centre / np.linalg.norm(centre, axis=1, keepdims=True)
    bad = []
    for a in range(len(NAMES)):
        for b in range(a):
            for k in np.nonzero((own == a) | (own == b))[0]:
                me, other = own[k], b if own[k] == a else a
                mates = (own == me) & (np.arange(len(own)) != k)
                if np.linalg.norm(Y[k] - Y[mates].mean(0)) >= np.linalg.norm(Y[k] - Y[own == other].mean(0)):
                    bad.append((NAMES[a], NAMES[b]))
                    break
    centres = lambda k: [np.linalg.norm(Y[k] - Y[(own == v) & (np.arange(len(own)) != k)].mean(0)) for v in range(len(NAMES))]
    near = np.array([np.argmin(centres(k)) for k in range(len(own))])
    return ({n: float(np.mean([f0[k] for k in np.nonzero(own == v)[0]]))
             for v, n in enumerate(NAMES)}, 1 - unit @ unit.T, bad, float(np.mean(near == own)))


def picture():
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    show = [0, 5, 6, 8, 17, 18]
    fig, ax = plt.subplots(len(show), 2, figsize=(18, 3 * len(show)))
    for k, i in enumerate(show):
        for j in (0, 1):
            ax[k, j].specgram(wav_load(pairs[i][j])[1][:72000] + 1e-6, NFFT=1024, noverlap=768, Fs=24000, vmin=-140, vmax=-40)
            ax[k, j].set_title(f"{pairs[i][2]}, {('Parley', 'teacher')[j]}: {rows[i][1][:70]}")
    plt.tight_layout()
    plt.savefig(OUT + "/spectrograms.png", dpi=55)


def main():
    torch.set_num_threads(1)
    cache = OUT + "/pocketsphinx.json"
    if not os.path.exists(cache):
        json.dump([[sphinx(which, same) for which in (0, 1)] for same in (True, False)], open(cache, "w"))
    ((wm, per_m), (wt, per_t)), ((loose_m, _), (loose_t, _)) = json.load(open(cache))
    table, f0_corr, len_corr, len_err = prosody()
    within = np.mean([c for _, _, c in table.values()])
    f0, dist, bad, named = voices()
    rec = json.load(open(OUT + "/recognised.json"))
    own = {k: rec[k]["wer"] for k in ("parley", "teacher") if rec.get(k)}
    print(
        f"pocketsphinx: Parley {100 * wm:.1f} %, teacher {100 * wt:.1f} % (as they come, Parley's with its pause at the end: {100 * loose_m:.1f} %, {100 * loose_t:.1f} %); own recogniser: {({k: round(100 * v, 1) for k, v in own.items()})}"
    )
    print(
        f"F0 correlation on aligned voiced frames: {within:.2f} within a voice (mean), {f0_corr:.2f} over all (log); lengths: correlation {len_corr:.3f}, mean error {100 * len_err:.1f} %"
    )
    n = len(NAMES)
    closest = sorted((dist[a, b], NAMES[a], NAMES[b]) for a in range(n) for b in range(a))
    print(f"pairs not separable: {len(bad)} of {n * (n - 1) // 2} {bad}; clips nearest to their own voice {100 * named:.0f} %")
    print("closest pairs:", [(round(float(d), 2), a, b) for d, a, b in closest[:5]], "median distance",
          round(float(closest[len(closest) // 2][0]), 2))
    print(
        "\n| voice | mean F0, Hz | teacher | F0 correlation | word errors | teacher | nearest voice (distance) |\n|---|---|---|---|---|---|---|"
    )
    for k, v in enumerate(NAMES):
        d = [(dist[k, j], NAMES[j]) for j in range(n) if j != k]
        m, t, c = table[v]
        print(
            f"| {v} | {f0[v]:.0f} | {t:.0f} | {c:.2f} | {100 * per_m[v]:.0f} % | {100 * per_t[v]:.0f} % | {min(d)[1]} ({min(d)[0]:.2f}) |")
    json.dump(dict(pocketsphinx=[wm, wt],
                   pocketsphinx_as_they_come=[loose_m, loose_t],
                   own=own,
                   f0_corr=f0_corr,
                   f0_corr_within=within,
                   length_corr=len_corr,
                   length_error=len_err,
                   f0=f0,
                   distances=dist.tolist(),
                   not_separable=bad,
                   named=named),
              open(OUT + "/measured.json", "w"),
              indent=1)
    picture()


if __name__ == "__main__":
    main()
