#!/usr/bin/env python3
"""Raw teacher audio -> 24 kHz, trimmed, loudness-levelled; F0 by praat; token durations by
alignment of the phonemizer tokens with the teacher's phones.  Writes data/pack/<voice>.npz."""

import glob, json, os, subprocess
import numpy as np, scipy.io.wavfile as wf, scipy.signal as ss
import paths
from model import load_config
from scipy.optimize import isotonic_regression
from shared.work import WORK
from voices import NAMES, VOICES

SR, FR, SUB = 24000, 480, 240  # output rate, samples per token frame, samples per F0/N frame
LEAD, TAIL = 0.08, 0.16  # silence kept before the first and after the last phone
WORST = 0.16  # cost of an alignment a phone
MAP = json.load(open(paths.HERE + "/data/phones.json"))  # the teachers' phones -> Kokoro's
SIL = {"pau", "h#", "brth", "#"}
VOW = set("AIOWYiuɑɔæəɚɛɪʊʌ")
REDUCED = set("əʌɪɛɚʊ")
NEAR = [set("td"), set("sz"), set("θð"), set("ʃʒ"), set("ʧʤ"), set("kɡ"), set("nŋ"), set("ɑɔ"), set("fv"), set("iɪ"), set("ɔO"), set("uʊ")]
STRESS, PUNCT = set("ˈˌ"), set(",.!?;")
VOCAB = load_config()["vocab"]


def sub(a, b):
    if a == b:
        return 0.0
    if any(a in s and b in s for s in NEAR):
        return 0.3
    if a in VOW and b in VOW:
        return 0.3 if a in REDUCED and b in REDUCED else 0.7
    return 1.6 if (a in VOW) != (b in VOW) else 1.0


def dp(tok, ph):
    """-> cost a token, pairs of the tokens and phones that belong together (None: alone)"""
    n, m = len(tok), len(ph)
    D, B = np.zeros((n + 1, m + 1)), np.zeros((n + 1, m + 1), int)
    D[:, 0], D[0] = np.arange(n + 1), np.arange(m + 1)
    B[1:, 0], B[0, 1:] = 1, 2
    for i in range(1, n + 1):
        for j in range(1, m + 1):
            c = (D[i - 1, j - 1] + sub(tok[i - 1], ph[j - 1]), D[i - 1, j] + 0.9, D[i, j - 1] + 0.9)
            B[i, j] = np.argmin(c)
            D[i, j] = min(c)
    i, j, out = n, m, []
    while i or j:
        token, phone = B[i, j] != 2, B[i, j] != 1
        i, j = i - token, j - phone
        out.append((i if token else None, j if phone else None))
    return D[n, m] / max(n, 1), out[::-1]


def align(tokens, segs):
    """tokens: string after the rules; segs: [(phone, start, end)].  Returns end time (s) of every token of [0, *tokens, 0]."""
    ph = [(MAP.get(p, p), s, e) for p, s, e in segs if p not in SIL]
    pure = [(i, c) for i, c in enumerate(tokens) if c not in STRESS and c not in PUNCT and c != " "]
    cost, path = dp([c for _, c in pure], [p for p, _, _ in ph])
    span, last, pend = {}, None, None
    for a, b in path:
        if a is not None:
            if b is None:
                t = span[last][1] if last is not None else ph[0][1]
                span[a] = [t, t]
            else:
                span[a] = [ph[b][1] if pend is None else pend, ph[b][2]]
                pend = None
            last = a
        elif last is None:
            pend = ph[b][1] if pend is None else pend
        elif ph[b][1] - span[last][1] < 1e-3:
            span[last][1] = ph[b][2]  # contiguous: absorb the extra phone
    sp = {pure[a][0]: v for a, v in span.items()}
    n, total = len(tokens), ph[-1][2] + TAIL
    ends = [sp[pure[0][0]][0]]  # leading 0 token
    nxt = [None] * (n + 1)
    for i in range(n - 1, -1, -1):
        nxt[i] = sp[i] if i in sp else nxt[i + 1]
    cur = ends[0]
    for i, c in enumerate(tokens):
        if i in sp:
            cur = max(cur, sp[i][1])
        elif c in STRESS:
            s, e = nxt[i]
            cur = max(cur, s + min(0.02, 0.3 * (e - s)))
        else:  # space or punctuation: owns the pause in front of the next phone
            q = nxt[i]
            end = q[0] if q is not None else total - 0.5 * TAIL
            more = i + 1 < n and (tokens[i + 1] == " " or tokens[i + 1] in PUNCT)
            cur = max(cur, end - (0.02 if more and end - cur > 0.04 else 0.0))
        ends.append(cur)
    ends.append(total)
    return cost, ends


def frames_of(ends):
    t = np.array(ends) / (FR / SR)
    k = np.arange(1, len(t) + 1)
    b = np.rint(isotonic_regression(t - k).x).astype(int) + k  # rounding a monotone sequence keeps every duration >= 1
    return np.diff(np.r_[0, b])


def segments(path, rate):
    """(phone, start, end) in seconds of a clip, whose times are those of its own playing speed times `rate`."""
    out, t = [], 0.0
    for phone, end in map(str.split, open(path)):
        out.append((phone, t, float(end) * rate))
        t = out[-1][2]
    return out


def clip(wav, tokens, warp):
    """-> cost of the alignment, frames of every token, samples from LEAD before the first phone on (None: not usable)"""
    sr, x = wf.read(wav)
    eff = int(round(sr * warp / 10) * 10)
    x = ss.resample_poly(x.astype(np.float32) / 32768, SR // 10, eff // 10).astype(np.float32)
    segs = segments(wav[:-4] + ".seg", sr / eff)
    real = [s for s in segs if s[0] not in SIL]
    if len(real) < 3:
        return None
    off = real[0][1] - LEAD
    cost, ends = align(tokens, [(p, a - off, b - off) for p, a, b in segs])
    dur = frames_of(ends)
    if cost > WORST or dur.min() < 1 or dur.max() > 50 or dur.sum() > 450:
        return cost, None, None
    y, o = np.zeros(int(dur.sum()) * FR, np.float32), int(round(off * SR))
    a = max(0, -o)
    part = x[max(0, o):max(0, o) + len(y) - a]
    y[a:a + len(part)] = part
    y[:240] *= np.linspace(0, 1, 240)
    y[-240:] *= np.linspace(1, 0, 240)
    return cost, dur, y


def pitch(folder, clips, lo, hi):
    """F0 in Hz of wave files, every SUB samples, 0 where unvoiced."""
    clips = [os.path.abspath(p) for p in clips]
    with open(folder + "/list.txt", "w") as f:
        f.writelines("%s\t%s\t%g\t%g\n" % (p, p[:-4] + ".f0", lo, hi) for p in clips)
    praat = ["praat", "--run", paths.HERE + "/pitch.praat", os.path.abspath(folder + "/list.txt")]
    subprocess.run(praat, check=True, stdout=subprocess.DEVNULL)
    return [np.array(open(p[:-4] + ".f0").read().split(), np.float32) for p in clips]


def energy(y, frames):
    windows = np.lib.stride_tricks.sliding_window_view(np.pad(y, (120, 120)), 480)[::SUB][:frames]
    return (np.log(np.sqrt((windows**2 * np.hanning(480)).sum(1) / SUB) + 1e-4) + 4).astype(np.float32)


def level(waves):
    """The gain that brings the loud parts of all waves to one level."""
    rms = np.concatenate([np.sqrt((y[:len(y) // SUB * SUB].reshape(-1, SUB)**2).mean(1)) for y in waves])
    return 0.085 / np.sqrt((rms[rms > 0.1 * np.percentile(rms, 95)]**2).mean())


def pack(name, tokens_of, raw, dst):
    """Everything of one voice in one file: what lists of arrays are is joined, beside the lengths of its members."""
    folder = raw + "/wav24"
    os.makedirs(folder, exist_ok=True)
    ids, costs, items = [], [], []
    for wav in sorted(glob.glob(raw + "/*.wav")):
        uid = os.path.basename(wav)[:-4]
        found = clip(wav, tokens_of[uid], VOICES[name].get("warp", 1.0))
        if found:
            costs.append(found[0])
            if found[1] is not None:
                ids.append(uid)
                items.append(found[1:])
    gain = level([y for _, y in items])
    durs, waves = [d for d, _ in items], [(np.clip(y * gain, -0.99, 0.99) * 32767).astype(np.int16) for _, y in items]
    clips = [f"{folder}/{uid}.wav" for uid in ids]
    for path, y in zip(clips, waves):
        wf.write(path, SR, y)
    first = np.concatenate(pitch(folder, clips, 60, 420))
    median = float(np.median(first[first > 0]))
    pitches = pitch(folder, clips, max(50, median * 0.55), median * 1.9)
    f0 = [np.pad(f[:2 * d.sum()], (0, max(0, 2 * d.sum() - len(f)))) for d, f in zip(durs, pitches)]
    lists = dict(wave=waves, tok=[np.array([0, *(VOCAB[c] for c in tokens_of[u]), 0], np.int16) for u in ids], f0=f0,
                 dur=[d.astype(np.int16) for d in durs], n=[energy(np.clip(y * gain, -0.99, 0.99), 2 * d.sum()) for d, y in items])
    joined = {k: np.concatenate(l) for k, l in lists.items()}
    np.savez(dst, ids=np.array(ids), **joined, **{k + "_len": np.array([len(x) for x in l]) for k, l in lists.items()})
    v = joined["f0"][joined["f0"] > 0]
    print("%-14s kept %d/%d  %.0f s  F0 median %.0f sd %.0f  align cost %.3f  1-frame tokens %.2f" %
          (name, len(ids), len(costs), len(joined["wave"]) / SR, np.median(v), v.std(), np.mean(costs), np.mean(joined["dur"] == 1)), flush=True)


def main():
    tokens_of = {l.split("\t")[0]: l.rstrip("\n").split("\t")[2] for l in open(WORK + "/data/phones.tsv")}
    os.makedirs(WORK + "/data/pack", exist_ok=True)
    for name in NAMES:
        raw, dst = f"{WORK}/data/raw/{name}", f"{WORK}/data/pack/{name}.npz"
        if os.path.exists(raw + "/done") and not os.path.exists(dst):
            pack(name, tokens_of, raw, dst)


if __name__ == "__main__":
    main()
