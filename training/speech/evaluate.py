#!/usr/bin/env python3
"""Measures what evaluate.ts spoke through Parley: word errors by pocketsphinx beside the teachers' and our own recogniser's, log-mel distance,
duration and F0 correlation with the teachers on the same 100 sentences (sentence i in voice i mod 19), mean F0 of every voice, how far every
two voices are apart.
usage: evaluate.py teacher   -> the teachers' own recordings of the sentences, $PARLEY_WORK/wer/teacher
       evaluate.py OUT       -> a Markdown report on stdout and OUT/measured.json

Speaker distance: cosine distance of mean MFCCs (1 to 19, standardised over all clips) on the same sentences, less the sentence's mean. Two
voices count as separable when every clip of either is nearer to the other clips of its own voice than to those of the other voice; mean log
F0, its spread and the tempo are three more dimensions there.
"""

import itertools, json, os, subprocess, sys
import numpy as np, scipy.fft, scipy.signal as ss, torch
import paths
import synth
from common import SR, wav_load, wav_save
from losses import align, logmel
from shared.work import WORK
from shared.words import errors, sphinx
from voices import NAMES, VOICES

TEACHER, HOP = WORK + "/wer/teacher", 240
ROWS = [tuple(l.rstrip("\n").split("\t")[:2]) for l in open(paths.HERE + "/eval_texts.tsv")]


def loud(x):
    return np.nonzero(np.abs(x) > 0.02 * np.abs(x).max())[0]


def cut(x, sr):
    """A clip with 0.08 s before its first and 0.16 s after its last sound."""
    i = loud(x)
    return x[max(0, i[0] - int(0.08 * sr)):i[-1] + int(0.16 * sr)]


def spoken(x):
    """Seconds from the first to the last sound."""
    i = loud(x)
    return (i[-1] - i[0]) / SR


def record_teachers():
    """The teachers' own audio, brought to 24 kHz and to the level of the training data."""
    os.makedirs(TEACHER, exist_ok=True)
    for k, name in enumerate(NAMES):
        raw = f"{WORK}/wer/raw/{name}"
        os.makedirs(raw, exist_ok=True)
        synth.speak(name, ROWS[k::len(NAMES)], raw)
        for i, _ in ROWS[k::len(NAMES)]:
            sr, x = wav_load(f"{raw}/{i}.wav")
            eff = int(round(sr * VOICES[name].get("warp", 1.0) / 10) * 10)
            x = cut(ss.resample_poly(x, SR // 10, eff // 10), SR)
            level = np.sqrt(np.convolve(x**2, np.ones(240) / 240, "same"))
            wav_save(f"{TEACHER}/{i}.wav", x * 0.085 / np.sqrt((level[level > 0.1 * np.percentile(level, 95)]**2).mean()))


def pitch(out, clips):
    """F0 in Hz every 10 ms, 0 where unvoiced."""
    os.makedirs(out + "/f0", exist_ok=True)
    outs = [os.path.abspath(f"{out}/f0/{k}.f0") for k in range(len(clips))]
    with open(out + "/f0/list.txt", "w") as f:
        f.writelines(f"{os.path.abspath(p)}\t{o}\t60\t420\n" for p, o in zip(clips, outs))
    praat = ["praat", "--run", paths.HERE + "/pitch.praat", os.path.abspath(out + "/f0/list.txt")]
    subprocess.run(praat, check=True, stdout=subprocess.DEVNULL)
    return [np.array(open(o).read().split(), float) for o in outs]


def word_errors(clips, same_silence):
    """-> share of wrong words, over all and by voice. pocketsphinx adapts its cepstral mean from clip to clip, to silence too: with
    `same_silence` every clip has as much."""
    hear, wrong = sphinx(), np.zeros((len(NAMES), 2))
    for k, ((_, text), path) in enumerate(zip(ROWS, clips)):
        x = wav_load(path)[1]
        x = ss.resample_poly(cut(x, SR) if same_silence else x, 2, 3)
        x = np.pad(x, (3200, 4800)) + 1e-4 * np.random.default_rng(0).standard_normal(len(x) + 8000)
        wrong[k % len(NAMES)] += errors(text, hear((np.clip(x, -1, 1) * 32767).astype("<i2")))
    return wrong[:, 0].sum() / wrong[:, 1].sum(), dict(zip(NAMES, wrong[:, 0] / wrong[:, 1]))


def prosody(out, ours, theirs):
    """-> per voice: mean F0, the teacher's, F0 correlation on aligned voiced frames; over all: the same correlation, correlation and mean error
    of the lengths, log-mel distance"""
    f0, lengths, distances = {n: [[], []] for n in NAMES}, [], []
    for k, (p, q, a, b) in enumerate(zip(ours, theirs, pitch(out, ours), pitch(out, theirs))):
        x, y = wav_load(p)[1], wav_load(q)[1]
        lengths.append((spoken(x), spoken(y)))
        mx, my = logmel(x, HOP), logmel(y, HOP)
        path = align(mx, my)
        distances.append(np.mean([np.abs(mx[i] - my[j]).mean() for i, j in path]))
        for i, j in path:
            if i < len(a) and j < len(b) and a[i] > 0 and b[j] > 0:
                for values, hz in zip(f0[NAMES[k % len(NAMES)]], (a[i], b[j])):
                    values.append(hz)
    table = {n: (np.mean(u), np.mean(v), np.corrcoef(u, v)[0, 1]) for n, (u, v) in f0.items()}
    log_ours, log_theirs = (np.concatenate([np.log(r[k]) for r in f0.values()]) for k in (0, 1))
    l = np.array(lengths)
    error = np.mean(np.abs(l[:, 0] - l[:, 1]) / l[:, 1])
    return table, np.corrcoef(log_ours, log_theirs)[0, 1], np.corrcoef(l.T)[0, 1], error, np.mean(distances)


def voices(out):
    """-> mean F0 of each voice on the same sentences, cosine distances of mean MFCCs, pairs that are not separable, share of the clips that
    are nearest to their own voice"""
    clips = [(v, f"{out}/voices/{n}/{f}") for v, n in enumerate(NAMES) for f in sorted(os.listdir(f"{out}/voices/{n}"))]
    logs = [np.log(x[x > 0]) for x in pitch(out, [c[1] for c in clips])]
    timbre, manner = [], []
    for (_, path), f0 in zip(clips, logs):
        x = wav_load(path)[1]
        mel = logmel(x, HOP)
        manner.append((f0.mean(), np.log(f0.std()), np.log(spoken(x))))
        timbre.append(scipy.fft.dct(mel[mel.mean(1) > mel.mean(1).max() - 4], norm="ortho")[:, 1:20].mean(0))
    text, own = np.array([os.path.basename(path) for _, path in clips]), np.array([v for v, _ in clips])

    def standard(z):
        z = np.array(z)
        for t in set(text):
            z[text == t] -= z[text == t].mean(0)
        return z / z.std(0)

    X = standard(timbre)
    Y = np.c_[X, 3 * standard(manner)]
    centre = np.array([X[own == v].mean(0) for v in range(len(NAMES))])
    unit = centre / np.linalg.norm(centre, axis=1, keepdims=True)
    others = np.arange(len(own))
    away = np.array([[np.linalg.norm(Y[k] - Y[(own == v) & (others != k)].mean(0)) for v in range(len(NAMES))] for k in others])
    wrong = lambda a, b: any(away[k, own[k]] >= away[k, b if own[k] == a else a] for k in others if own[k] in (a, b))
    bad = [(NAMES[a], NAMES[b]) for b, a in itertools.combinations(range(len(NAMES)), 2) if wrong(a, b)]
    f0 = {n: float(np.mean([np.exp(x.mean()) for x, o in zip(logs, own) if o == v])) for v, n in enumerate(NAMES)}
    return f0, 1 - unit @ unit.T, bad, float(np.mean(away.argmin(1) == own))


def measure(out):
    ours, theirs = ([f"{folder}/{i}.wav" for i, _ in ROWS] for folder in (out + "/sentences", TEACHER))
    (wer, per), (wer_t, per_t) = (word_errors(clips, True) for clips in (ours, theirs))
    loose, loose_t = (word_errors(clips, False)[0] for clips in (ours, theirs))
    table, f0_all, length, length_error, mel = prosody(out, ours, theirs)
    f0, apart, bad, named = voices(out)
    heard = json.load(open(out + "/recognised.json"))
    own = {k: heard[k]["wer"] for k in ("parley", "teacher") if heard.get(k)}
    percent = lambda x: f"{100 * x:.1f} %"
    print(f"pocketsphinx: Parley {percent(wer)}, teacher {percent(wer_t)} (as they come, Parley's with its pause at the end: {percent(loose)}, "
          f"{percent(loose_t)}); own recogniser: { {k: percent(v) for k, v in own.items()} }; log-mel L1 {mel:.3f}")
    print(f"F0 correlation on aligned voiced frames: {np.mean([c for _, _, c in table.values()]):.2f} within a voice (mean), {f0_all:.2f} over all "
          f"(log); lengths: correlation {length:.3f}, mean error {percent(length_error)}")
    n = len(NAMES)
    print(f"pairs not separable: {len(bad)} of {n * (n - 1) // 2} {bad}; clips nearest to their own voice {percent(named)}")
    print("\n| voice | mean F0, Hz | teacher | F0 correlation | word errors | teacher | nearest voice (distance) |\n|---|---|---|---|---|---|---|")
    for k, v in enumerate(NAMES):
        d, other = min((apart[k, j], NAMES[j]) for j in range(n) if j != k)
        _, teacher, c = table[v]
        print(f"| {v} | {f0[v]:.0f} | {teacher:.0f} | {c:.2f} | {percent(per[v])} | {percent(per_t[v])} | {other} ({d:.2f}) |")
    numbers = dict(pocketsphinx=[wer, wer_t], pocketsphinx_as_they_come=[loose, loose_t], own=own, f0_corr=f0_all, length_corr=length,
                   length_error=length_error, mel=float(mel), f0=f0, distances=apart.tolist(), not_separable=bad, named=named)
    json.dump(numbers, open(out + "/measured.json", "w"), indent=1)


if __name__ == "__main__":
    torch.set_num_threads(1)
    record_teachers() if sys.argv[1] == "teacher" else measure(sys.argv[1])
