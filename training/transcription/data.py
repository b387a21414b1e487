"""Shard access, mel-domain augmentation and batch composition."""

import os, json, glob, numpy as np, paths

PHONES = 'aa ae ah ao aw ax ay b ch d dh eh er ey f g hh ih iy jh k l m n ng ow oy p r s sh t th uh uw v w y z zh'.split()
PID = {p: i + 1 for i, p in enumerate(PHONES)}  # 0 = CTC blank


class Store:
    """All utterances of the finished shards; call refresh() to see shards written since."""

    def __init__(s, dir=paths.WORK + '/data'):
        s.dir, s.seen, s.utts, s.real = dir, set(), [], []
        s.refresh()

    def refresh(s):
        for f in sorted(glob.glob(s.dir + '/*.json')):
            if f in s.seen:
                continue
            s.seen.add(f)
            mm = np.memmap(f[:-5] + '.f16', np.float16, 'r').reshape(-1, 80)
            for m in json.load(open(f)):
                ph = [PID[p] for p in m['ph'].split() if p in PID]
                if len(ph) < 2 or m['n'] < 25 or m['n'] / len(ph) < 2.6:
                    continue
                (s.real if m['voice'].startswith('real') else s.utts).append((m['text'], ph, mm, m['off'], m['n'], m['voice']))
        s.by_len = sorted(range(len(s.utts)), key=lambda i: s.utts[i][4])

    def mel(s, u):
        return np.asarray(u[2][u[3] : u[3] + u[4]], np.float32)


LN10 = np.float32(np.log(10.0))


def p10(x):
    return np.exp(x * LN10)


def warp(m, r):
    """Vocal-tract-length perturbation: warp the mel axis."""
    a = np.clip(r.normal(1.0, 0.055), 0.86, 1.16)
    j = np.arange(80, dtype=np.float32)
    src = np.clip(np.where(j < 62, j * a, 62 * a + (j - 62) * (79 - 62 * a) / 17), 0, 78.999)
    i = src.astype(np.int32)
    f = (src - i).astype(np.float32)
    return m[:, i] * (1 - f) + m[:, i + 1] * f


def stretch(m, r):
    a = r.uniform(0.85, 1.18)
    n = int(len(m) * a)
    src = np.linspace(0, len(m) - 1.001, n)
    i = src.astype(np.int32)
    f = (src - i).astype(np.float32)[:, None]
    return m[i] * (1 - f) + m[i + 1] * f


def smooth_curve(r, n=80, knots=6, amp=0.6):
    return np.interp(np.linspace(0, knots - 1, n), np.arange(knots), r.normal(0, amp, knots)).astype(np.float32)


def noise(T, r, level):
    """Stationary-ish coloured noise, mel power (T, 80); level = log10 power of its mean band."""
    shape = smooth_curve(r, amp=0.5) + np.linspace(0, -r.uniform(-0.5, 2.5), 80, dtype=np.float32)
    df = 2 + 10 * (np.arange(80, dtype=np.float32) / 79) ** 2
    fl = r.standard_gamma(df / 2, (T, 80)).astype(np.float32) / (df / 2)
    mod = np.interp(
        np.arange(T), np.arange(0, T + 50, 50), r.normal(0, r.choice([0.03, 0.25]), (T + 99) // 50 + 0)[: len(np.arange(0, T + 50, 50))]
    ).astype(np.float32)
    return p10((shape - shape.mean() + level)[None] + mod[:, None]) * fl


def augment(segs, T, T_rec, r, store, strength=1.0):
    """segs: [(start, log10 mel)] placed on a T-frame canvas of digital silence; T_rec = end of the 'recorded' part. Returns normalised (80, T)."""
    P = np.zeros((T, 80), np.float32)
    gain = r.uniform(-2.2, 0.3)
    tot = []
    for st, m in segs:
        P[st : st + len(m)] += p10(m)
        tot.append(np.sort(m.mean(1))[int(len(m) * 0.7)])
    spk = float(np.mean(tot)) if tot else -2.0  # speech level (log10)
    u = r.random()
    if u < 0.75 * strength:
        snr = r.uniform(0.4, 4.5) if r.random() < 0.75 else r.uniform(1.5, 6)
        P[:T_rec] += noise(T_rec, r, spk - snr + 0.2)
    if r.random() < 0.08 * strength and store is not None and tot:  # another voice in the background
        o = store.utts[r.integers(len(store.utts))]
        m = store.mel(o)
        n = min(len(m), T_rec)
        k = r.integers(0, T_rec - n + 1)
        P[k : k + n] += p10(m[:n] - r.uniform(1.2, 2.5))
    L = np.log10(np.maximum(P, 1e-10))
    if r.random() < 0.7:
        L = L + smooth_curve(r, amp=0.25)[None]
    v = r.random()
    if v < 0.08:
        L[:, 60:] -= r.uniform(1, 4)  # narrow band (telephone)
    elif v < 0.14:
        L[:, r.integers(66, 79) :] -= r.uniform(0.5, 4)
    elif v < 0.18:
        L[:, : r.integers(2, 8)] -= r.uniform(0.5, 3)
    L = np.maximum(L + gain, -10)
    L[T_rec:] = -10
    L = (np.maximum(L, L.max() - 8) + 4) / 4
    if strength > 0:  # SpecAugment
        for _ in range(r.integers(0, 3)):
            f = r.integers(1, 12)
            k = r.integers(0, 80 - f)
            L[:, k : k + f] = L[:T_rec].mean()
        for _ in range(r.integers(0, 1 + T_rec // 250)):
            f = r.integers(2, 18)
            k = r.integers(0, max(1, T_rec - f))
            L[k : k + f] = L[:T_rec].mean()
    return np.ascontiguousarray(L.T, np.float32)


class Sampler:
    def __init__(s, store, tk, seed=0):
        s.w = None
        s.st, s.tk, s.r = store, tk, np.random.default_rng(seed)

    def utt(s, lo, hi, near=None):
        """A random utterance with lo <= frames <= hi."""
        r = s.r
        if s.st.real and r.random() < 0.07:
            for _ in range(4):
                u = s.st.real[r.integers(len(s.st.real))]
                if lo <= u[4] <= hi:
                    return u
        for _ in range(200):
            u = s.st.utts[r.integers(len(s.st.utts))]
            if lo <= u[4] <= hi and (s.w is None or r.random() < s.w(u[5])):
                return u
        return u

    def example(s, T, k, strength, p_stamp=None):
        """Fill a T-frame window with up to k utterances. -> mel (80,T), token ids, phones."""
        r, tk = s.r, s.tk
        stamps = r.random() < ((0.3 if k == 1 else 0.45) if p_stamp is None else p_stamp)
        if strength < 1 and r.random() > strength:
            strength = 0
        segs, text, phs, t = [], [], [], int(r.integers(0, 40)) if k < 90 else int(r.integers(0, 80))
        first = None
        for i in range(k):
            room = T - t - 4
            if room < 30:
                break
            u = s.utt(25 if i else max(25, int(room * 0.55)) if k == 1 else 25, min(room, 1800)) if first is None or i else first
            if u[4] > room:
                if i == 0:
                    continue
                break
            m = s.st.mel(u)
            if strength > 0:
                if r.random() < 0.7:
                    m = warp(m, r)
                if r.random() < 0.35:
                    m2 = stretch(m, r)
                    if len(m2) <= room and len(m2) / len(u[1]) > 2.8:
                        m = m2
                m = m + np.float32(r.uniform(-0.25, 0.25))
            segs.append((t, m))
            text.append(u[0])
            phs += u[1]
            t += len(m) + int(r.integers(5, 90))
        if not segs:
            return np.full((80, T), -1.5, np.float32), [tk.sot, tk.en, tk.tr, tk.nots, tk.eot], [], [(-1, 1)] * 5
        end = segs[-1][0] + len(segs[-1][1])
        T_rec = min(T, end + int(r.integers(0, 60)))
        mel = augment(segs, T, T_rec, r, s.st, strength)
        ids = [tk.sot, tk.en, tk.tr]
        c = [(-1, 1)] * 3  # c: expected (position, sigma) of every token, for the guided-attention loss
        if not stamps:
            ids.append(tk.nots)
            c.append((-1, 1))
        for (st, m), x in zip(segs, text):
            e = tk.encode(' ' + x)
            n = len(e)
            body = [((st + (j + 0.5) / n * len(m)) / 2, 0.06 * len(m) + 6) for j in range(n)]
            if stamps:
                e = [tk.t0 + st // 2] + e + [tk.t0 + min(1500, (st + len(m)) // 2)]
                body = [(st / 2, 10)] + body + [((st + len(m)) / 2, 10)]
            ids += e
            c += body
        return mel, ids + [tk.eot], phs, c + [(-1, 1)]

    def batch(s, T, B, k, strength=1.0, p_stamp=None, p_off=0.5):
        """B windows of T frames. -> mel, dec input, targets (-100 = ignored), phones, phone lengths, position offset."""
        r = s.r
        ex = [s.example(T, k, strength, p_stamp) for _ in range(B)]
        if r.random() < 0.06:  # one window without speech
            if r.random() < 0.7:
                mel = augment([], T, int(r.integers(T // 2, T + 1)), r, None, 1.0)
            else:
                mel = np.full((80, T), -1.5, np.float32)
            ex[-1] = (mel, [s.tk.sot, s.tk.en, s.tk.tr, s.tk.nots, s.tk.eot], [], [(-1, 1)] * 5)
        n = max(len(e[1]) for e in ex) - 1
        x = np.full((B, n), s.tk.eot)
        y = np.full((B, n), -100)
        g = np.full((B, n, 2), -1.0, np.float32)
        g[..., 1] = 1
        for i, (_, ids, ph, c) in enumerate(ex):
            g[i, : len(c) - 1] = c[1:]
            ids = ids[:449]
            x[i, : len(ids) - 1] = ids[:-1]
            y[i, : len(ids) - 1] = ids[1:]
            y[i, :2] = -100
            if not ph:
                y[i, 0] = s.tk.nosp
        off = 0 if T >= 3000 or r.random() > p_off else int(r.integers(0, 1500 - T // 2))
        if off and any((i >= s.tk.t0).any() for i in [x]):  # stamps are absolute: shift them with the window
            for a in (x, y):
                a[a >= s.tk.t0] += off
        L = max(1, max(len(e[2]) for e in ex))
        ph = np.zeros((B, L), np.int64)
        for i, e in enumerate(ex):
            ph[i, : len(e[2])] = e[2]
        return np.stack([e[0] for e in ex]), x[:, :448], y[:, :448], ph, np.array([len(e[2]) for e in ex]), off, g[:, :448]

    def load_text(s):
        s.txt = [(u[0], u[1]) for u in s.st.utts if u[4] < 1100]
        f = paths.WORK + '/text/phones.tsv'
        if os.path.exists(f):
            for l in open(f):
                if l.endswith('\n') and '\t' in l:
                    t, p = l.rstrip('\n').split('\t')
                    p = [PID[q] for q in p.split() if q in PID]
                    if 2 < len(p) < 110:
                        s.txt.append((t, p))
        s.txt.sort(key=lambda t: len(t[1]))
        print('text-only sentences', len(s.txt), flush=True)

    def text_batch(s, B):
        """Phones with random durations and errors instead of audio -> phone ids per encoder position, decoder input, targets, guide."""
        r, tk = s.r, s.tk
        k = int(r.integers(0, len(s.txt) - B))
        ex = []
        for j in range(B):
            t, ph = s.txt[k + j]
            ph = np.array(ph)
            u = r.random(len(ph))
            ph = np.where(u < 0.06, r.integers(1, len(PHONES) + 1, len(ph)), ph)
            ph = ph[u < 0.97] if (u < 0.97).sum() > 1 else ph
            a = np.concatenate(
                [
                    np.zeros(int(r.integers(0, 12)), np.int64),
                    np.repeat(ph, r.integers(1, 5, len(ph))),
                    np.zeros(int(r.integers(0, 12)), np.int64),
                ]
            )
            st = np.flatnonzero(a)
            st, en = st[0], st[-1] + 1
            e = tk.encode(' ' + t)
            n = len(e)
            ex.append(
                (
                    a,
                    [tk.sot, tk.en, tk.tr, tk.nots] + e + [tk.eot],
                    [(-1, 1)] * 4 + [(st + (i + 0.5) / n * (en - st), 0.12 * (en - st) + 6) for i in range(n)] + [(-1, 1)],
                )
            )
        n = max(len(e[1]) for e in ex) - 1
        T = max(len(e[0]) for e in ex)
        p = np.zeros((B, T), np.int64)
        x = np.full((B, n), tk.eot)
        y = np.full((B, n), -100)
        g = np.full((B, n, 2), -1.0, np.float32)
        g[..., 1] = 1
        for i, (a, ids, c) in enumerate(ex):
            p[i, : len(a)] = a
            x[i, : len(ids) - 1] = ids[:-1]
            y[i, 3 : len(ids) - 1] = ids[4:]
            g[i, : len(c) - 1] = c[1:]
        return p, x, y, g
