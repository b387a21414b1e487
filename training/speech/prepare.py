#!/usr/bin/env python3
"""Raw teacher audio -> 24 kHz, trimmed, loudness-levelled; F0 by praat; token durations by
alignment of the phonemizer tokens with the teacher's phones.  Writes data/pack/<voice>.npz.
usage: prepare.py [rawdir] [phones.tsv] [packdir]"""

import os, sys, json, subprocess, glob
import numpy as np, scipy.signal as ss, scipy.io.wavfile as wf
from voices import VOICES, NAMES

ROOT = os.path.abspath(os.environ.get("PARLEY_WORK", "work"))
raw = sys.argv[1] if len(sys.argv) > 1 else ROOT + "/data/raw"
phf = sys.argv[2] if len(sys.argv) > 2 else ROOT + "/data/phones.tsv"
packdir = sys.argv[3] if len(sys.argv) > 3 else ROOT + "/data/pack"
SR, FR, SUB = 24000, 480, 240  # output rate, samples per token frame, samples per F0/N frame
LEAD, TAIL = 0.08, 0.16  # silence kept before the first and after the last phone
MAP = dict(aa="ɑ",
           ae="æ",
           ah="ʌ",
           ao="ɔ",
           aw="W",
           ax="ə",
           axr="ɚ",
           ay="I",
           b="b",
           ch="ʧ",
           d="d",
           dh="ð",
           dx="t",
           eh="ɛ",
           er="ɚ",
           ey="A",
           f="f",
           g="ɡ",
           hh="h",
           hv="h",
           ih="ɪ",
           iy="i",
           jh="ʤ",
           k="k",
           l="l",
           m="m",
           n="n",
           nx="n",
           ng="ŋ",
           ow="O",
           oy="Y",
           p="p",
           r="ɹ",
           s="s",
           sh="ʃ",
           t="t",
           th="θ",
           uh="ʊ",
           uw="u",
           v="v",
           w="w",
           y="j",
           z="z",
           zh="ʒ",
           el="l",
           em="m",
           en="n")
SIL = {"pau", "h#", "brth", "#"}
VOW = set("AIOWYiuɑɔæəɚɛɪʊʌ")
REDUCED = set("əʌɪɛɚʊ")
NEAR = [set("td"), set("sz"), set("θð"), set("ʃʒ"), set("ʧʤ"), set("kɡ"), set("nŋ"), set("ɑɔ"), set("fv"), set("iɪ"), set("ɔO"), set("uʊ")]
STRESS, PUNCT = set("ˈˌ"), set(",.!?;")
vocab = json.load(open(ROOT + "/config.json"))["vocab"]


def sub(a, b):
    if a == b:
        return 0.0
    if any(a in s and b in s for s in NEAR):
        return 0.3
    if a in VOW and b in VOW:
        return 0.3 if a in REDUCED and b in REDUCED else 0.7
    if (a in VOW) != (b in VOW):
        return 1.6
    return 1.0


def dp(tok, ph):
    n, m = len(tok), len(ph)
    D = np.zeros((n + 1, m + 1))
    B = np.zeros((n + 1, m + 1), int)
    D[:, 0] = np.arange(n + 1)
    D[0] = np.arange(m + 1)
    B[1:, 0] = 1
    B[0, 1:] = 2
    for i in range(1, n + 1):
        for j in range(1, m + 1):
            c = (D[i - 1, j - 1] + sub(tok[i - 1], ph[j - 1]), D[i - 1, j] + 0.9, D[i, j - 1] + 0.9)
            k = int(np.argmin(c))
            D[i, j] = c[k]
            B[i, j] = k
    i, j, out = n, m, []
    while i or j:
        k = B[i, j]
        if k == 0:
            out.append((i - 1, j - 1))
            i -= 1
            j -= 1
        elif k == 1:
            out.append((i - 1, None))
            i -= 1
        else:
            out.append((None, j - 1))
            j -= 1
    return D[n, m] / max(n, 1), out[::-1]


def pav(y):
    """isotonic (non-decreasing) least-squares fit"""
    v, w = [], []
    for x in y:
        v.append(float(x))
        w.append(1)
        while len(v) > 1 and v[-2] > v[-1]:
            s = w[-2] + w[-1]
            v[-2:] = [(v[-2] * w[-2] + v[-1] * w[-1]) / s]
            w[-2:] = [s]
    return np.repeat(v, w)


def align(tokens, segs):
    """tokens: string after the rules; segs: [(phone, start, end)].  Returns end time (s) of every token of [0, *tokens, 0]."""
    ph = [(MAP.get(p, p), s, e) for p, s, e in segs if p not in SIL]
    pure = [(i, c) for i, c in enumerate(tokens) if c not in STRESS and c not in PUNCT and c != " "]
    cost, path = dp([c for _, c in pure], [p for p, _, _ in ph])
    span = {}
    last = None
    pend = None
    for a, b in path:
        if a is not None and b is not None:
            s, e = ph[b][1], ph[b][2]
            if pend is not None:
                s = pend
                pend = None
            span[a] = [s, e]
            last = a
        elif a is not None:
            t = span[last][1] if last is not None else ph[0][1]
            span[a] = [t, t]
            last = a
        else:
            if last is None:
                pend = ph[b][1] if pend is None else pend
            elif ph[b][1] - span[last][1] < 1e-3:
                span[last][1] = ph[b][2]  # contiguous: absorb the extra phone
    sp = {pure[a][0]: v for a, v in span.items()}
    n = len(tokens)
    ends = [sp[pure[0][0]][0]]  # leading 0 token
    total = ph[-1][2] + TAIL
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
    b = np.rint(pav(t - k)).astype(int) + k  # rounding a monotone sequence keeps every duration >= 1
    return np.diff(np.r_[0, b])


def main():
    rows = {l.split("\t")[0]: l.rstrip("\n").split("\t") for l in open(phf)}
    os.makedirs(packdir, exist_ok=True)
    for name in NAMES:
        dst = os.path.join(packdir, name + ".npz")
        if os.path.exists(dst) or not os.path.exists(raw + "/%s/done" % name):
            continue
        w = VOICES[name].get("warp", 1.0)
        wd = raw + "/%s/wav24" % name
        os.makedirs(wd, exist_ok=True)
        items, lst, costs = [], [], []
        for f in sorted(glob.glob(raw + "/%s/*.wav" % name)):
            uid = os.path.basename(f)[:-4]
            sr, x = wf.read(f)
            x = x.astype(np.float32) / 32768
            eff = int(round(sr * w / 10) * 10)
            x = ss.resample_poly(x, SR // 10, eff // 10).astype(np.float32)
            segs, t = [], 0.0
            for l in open(f[:-4] + ".seg"):
                p, e = l.split()
                e = float(e) * sr / eff
                segs.append((p, t, e))
                t = e
            real = [s for s in segs if s[0] not in SIL]
            if len(real) < 3:
                continue
            off = real[0][1] - LEAD
            segs = [(p, a - off, b - off) for p, a, b in segs]
            tokens = rows[uid][2]
            cost, ends = align(tokens, segs)
            costs.append(cost)
            if cost > 0.16:
                continue
            dur = frames_of(ends)
            if dur.min() < 1 or dur.max() > 50 or dur.sum() > 450:
                continue
            L = int(dur.sum()) * FR
            o = int(round(off * SR))
            y = np.zeros(L, np.float32)
            a = max(0, -o)
            src = x[max(0, o):max(0, o) + L - a]
            y[a:a + len(src)] = src
            fade = 240
            y[:fade] *= np.linspace(0, 1, fade)
            y[-fade:] *= np.linspace(1, 0, fade)
            items.append([uid, tokens, dur, y])
        lev = np.concatenate([np.sqrt((i[3][:len(i[3]) // SUB * SUB].reshape(-1, SUB)**2).mean(1)) for i in items])
        g = 0.085 / np.sqrt((lev[lev > 0.1 * np.percentile(lev, 95)]**2).mean())
        for it in items:
            it[3] = np.clip(it[3] * g, -0.99, 0.99)
            p = wd + "/%s.wav" % it[0]
            wf.write(p, SR, (it[3] * 32767).astype(np.int16))
            lst.append(p)

        def pitch(lo, hi):
            with open(wd + "/list.txt", "w") as fh:
                fh.writelines("%s\t%s\t%g\t%g\n" % (os.path.abspath(p), os.path.abspath(p)[:-4] + ".f0", lo, hi) for p in lst)
            subprocess.run([
                "nice", "-n", "5", "praat", "--run",
                os.path.dirname(os.path.abspath(__file__)) + "/pitch.praat",
                os.path.abspath(wd + "/list.txt")
            ],
                           check=True,
                           stdout=subprocess.DEVNULL)
            return [np.array(open(p[:-4] + ".f0").read().split(), np.float32) for p in lst]

        first = np.concatenate(pitch(60, 420))
        med = float(np.median(first[first > 0]))
        f0s = pitch(max(50, med * 0.55), med * 1.9)
        wave, toks, durs, F0, N, ids = [], [], [], [], [], []
        for it, f in zip(items, f0s):
            nf = 2 * int(it[2].sum())
            ff = np.zeros(nf, np.float32)
            ff[:min(nf, len(f))] = f[:nf]
            pad = np.pad(it[3], (120, 120))
            en = np.sqrt((np.lib.stride_tricks.sliding_window_view(pad, 480)[::240][:nf]**2 * np.hanning(480)).sum(1) / 240)
            wave.append((it[3] * 32767).astype(np.int16))
            F0.append(ff)
            N.append((np.log(en + 1e-4) + 4).astype(np.float32))
            toks.append(np.array([0] + [vocab[c] for c in it[1]] + [0], np.int16))
            durs.append(it[2].astype(np.int16))
            ids.append(it[0])
        flat = {}
        for k, l in dict(wave=wave, tok=toks, dur=durs, f0=F0, n=N).items():
            flat[k] = np.concatenate(l)
            flat[k + "_len"] = np.array([len(x) for x in l])
        np.savez(dst, ids=np.array(ids), **flat)
        v = np.concatenate(F0)
        v = v[v > 0]
        print("%-14s kept %d/%d  %.0f s  F0 median %.0f sd %.0f  align cost %.3f  1-frame tokens %.2f" %
              (name, len(items), len(costs), sum(map(len, wave)) / SR, np.median(v), v.std(), np.mean(costs),
               np.mean(np.concatenate(durs) == 1)),
              flush=True)


if __name__ == "__main__":
    main()
