"""Shard access, mel-domain augmentation and batch composition."""

import os, json, glob, numpy as np, paths

PHONES = 'aa ae ah ao aw ax ay b ch d dh eh er ey f g hh ih iy jh k l m n ng ow oy p r s sh t th uh uw v w y z zh'.split()
PID = {p: i + 1 for i, p in enumerate(PHONES)}  # 0 = CTC blank


class Store:
    """All utterances of the finished shards, in groups (synthetic voices, real people, own voices); refresh() picks up shards written since."""

    GROUPS = ('synth', 'real', 'own')

    def __init__(s, dir=paths.WORK + '/data'):
        s.dir, s.seen = dir, set()
        s.utts = {g: [] for g in s.GROUPS}
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
                kind = m['voice'].split(':')[0]
                s.utts[kind if kind in s.GROUPS else 'synth'].append((m['text'], ph, mm, m['off'], m['n'], m['voice']))
        for g in s.GROUPS:
            s.utts[g].sort(key=lambda u: u[4])
        s.frames = {g: np.array([u[4] for u in s.utts[g]]) for g in s.GROUPS}

    def pick(s, group, lo, hi, r):
        """A random utterance of lo to hi frames, or of the nearest length there is (None in an empty group)."""
        u, n = s.utts[group], s.frames[group]
        if not len(u):
            return None
        a, b = np.searchsorted(n, lo), np.searchsorted(n, hi, 'right')
        if a >= b:
            return u[max(0, b - 1)] if n[max(0, b - 1)] <= hi else None
        return u[r.integers(a, b)]

    def mel(s, u):
        return np.asarray(u[2][u[3] : u[3] + u[4]], np.float32)


def p10(x):
    return np.exp(x * np.float32(np.log(10.0)))


def warp(m, r):
    """Vocal-tract-length perturbation: warp the mel axis."""
    a = np.clip(r.normal(1.0, 0.06), 0.84, 1.18)
    j = np.arange(80, dtype=np.float32)
    src = np.clip(np.where(j < 62, j * a, 62 * a + (j - 62) * (79 - 62 * a) / 17), 0, 78.999)
    i = src.astype(np.int32)
    w = np.zeros((80, 80), np.float32)
    w[i, np.arange(80)] = 1 - (src - i)
    w[i + 1, np.arange(80)] += src - i
    return m @ w


def stretch(m, r):
    src = np.linspace(0, len(m) - 1.001, int(len(m) * r.uniform(0.85, 1.18)))
    i = src.astype(np.int32)
    f = (src - i).astype(np.float32)[:, None]
    return m[i] * (1 - f) + m[i + 1] * f


def smooth_curve(r, n=80, knots=6, amp=0.6):
    return np.interp(np.linspace(0, knots - 1, n), np.arange(knots), r.normal(0, amp, knots)).astype(np.float32)


DF = 2 + 10 * (np.arange(80, dtype=np.float32) / 79)**2
# relative mel power (n, 80) of white noise: chi-square with as many degrees of freedom as a filter has bins
BANK = (np.random.default_rng(5).standard_gamma(DF / 2, (40000, 80)) / (DF / 2)).astype(np.float32)


def noise(T, r, level):
    """Stationary-ish coloured noise, mel power (T, 80); level = log10 power of its mean band."""
    shape = smooth_curve(r, amp=0.5) + np.linspace(0, -r.uniform(-0.5, 2.5), 80, dtype=np.float32)
    k = T // 50 + 2
    mod = np.interp(np.arange(T), np.arange(k) * 50, r.normal(0, r.choice([0.03, 0.25]), k)).astype(np.float32)
    at = r.integers(0, len(BANK) - T)
    return BANK[at : at + T] * p10(shape - shape.mean() + level)[None] * p10(mod)[:, None]


def augment(segs, T, T_rec, r, store, strength=1.0):
    """segs: [(start, log10 mel)] placed on a T-frame canvas of digital silence; T_rec = end of the 'recorded' part. Returns normalised (80, T)."""
    P = np.zeros((T, 80), np.float32)
    gain = r.uniform(-2.2, 0.3)
    for st, m in segs:
        P[st:st + len(m)] += p10(m)
    spk = float(np.mean([np.sort(m.mean(1))[int(len(m) * 0.7)] for _, m in segs])) if segs else -2.0  # speech level (log10)
    if r.random() < 0.75 * strength:
        snr = r.uniform(0.4, 4.5) if r.random() < 0.75 else r.uniform(1.5, 6)
        P[:T_rec] += noise(T_rec, r, spk - snr + 0.2)
    if r.random() < 0.08 * strength and store is not None and segs:  # another voice in the background
        m = store.mel(store.pick('synth', 0, 9999, r))[:T_rec]
        k = r.integers(0, T_rec - len(m) + 1)
        P[k:k + len(m)] += p10(m - r.uniform(1.2, 2.5))
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
        for view, times, longest, end in ((L.T, r.integers(0, 3), 12, 80), (L, r.integers(0, 1 + T_rec // 250), 18, T_rec)):
            for _ in range(times):
                n = r.integers(1 + (view is L), longest)
                k = r.integers(0, max(1, end - n))
                view[k:k + n] = L[:T_rec].mean()
    return np.ascontiguousarray(L.T, np.float32)


LENGTHS = (144, 176, 208, 240, 280, 320, 368, 424, 480, 560, 640, 760, 920, 1120, 1400, 2000, 3000)  # few shapes: each new one costs CPU kernels set-up


class Sampler:
    """Composes batches; `share` is how often a window takes its (first) utterance from a group."""

    def __init__(s, store, tk, seed, share):
        s.st, s.tk, s.r = store, tk, np.random.default_rng(seed)
        s.share = share

    def group(s, r):
        u = r.random()
        for g, p in s.share.items():
            if u < p and len(s.st.utts[g]):
                return g
            u -= p
        return 'synth'

    def length(s, r):
        """Frames of a window that suits a random utterance (r: random.Random), so that every length is met as often as it occurs."""
        n = s.st.frames[s.group(r)]
        need = n[int(r.random() * len(n))] + 24
        return next(T for T in LENGTHS[:-2] if T >= need or T == LENGTHS[-3])

    def example(s, T, k, strength, p_stamp):
        """Fill a T-frame window with up to k utterances. -> mel (80, T), token ids, phones, expected (position, sigma) of every token."""
        r, tk = s.r, s.tk
        if r.random() > strength:
            strength = 0
        stamps = r.random() < p_stamp
        segs, text, phs, t = [], [], [], int(r.integers(0, 40))
        group = s.group(r)
        for _ in range(k):
            room = T - t - 4
            u = s.st.pick(group, int(room * 0.7) if k == 1 else 25, min(room, 1800), r) if room >= 60 else None
            if u is None:
                break
            m = s.st.mel(u)
            if strength > 0:
                m = warp(m, r) if r.random() < 0.75 else m
                longer = stretch(m, r) if r.random() < 0.4 else m
                if len(longer) <= room and len(longer) / len(u[1]) > 2.8:
                    m = longer
                m = m + np.float32(r.uniform(-0.25, 0.25))
            segs.append((t, m))
            text.append(u[0])
            phs += u[1]
            t += len(m) + int(r.integers(5, 90))
        if not segs:
            return np.full((80, T), -1.5, np.float32), *s.nothing()
        end = segs[-1][0] + len(segs[-1][1])
        T_rec = min(T, end + int(r.integers(0, 60)))
        mel = augment(segs, T, T_rec, r, s.st, strength)
        ids = [tk.sot, tk.en, tk.tr] + ([] if stamps else [tk.nots])
        c = [(-1, 1)] * len(ids)
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

    def nothing(s):
        return [s.tk.sot, s.tk.en, s.tk.tr, s.tk.nots, s.tk.eot], [], [(-1, 1)] * 5

    def quiet(s, T):
        """A window without speech: noise, hum or digital silence."""
        r = s.r
        if r.random() < 0.25:
            mel = np.full((80, T), -1.5, np.float32)
        elif r.random() < 0.7:
            mel = augment([], T, int(r.integers(T // 2, T + 1)), r, None, 1.0)
        else:  # a steady tone with harmonics
            L = np.full((T, 80), -10, np.float32)
            n = int(r.integers(T // 2, T + 1))
            for k in range(1, int(r.integers(2, 6))):
                j = min(79, int(r.integers(0, 12)) * k)
                L[:n, max(0, j - 1) : j + 2] = r.uniform(-5, 0) - k
            L[:n] = np.maximum(L[:n], r.uniform(-10, -6) + 0.2 * np.log10(BANK[:n] + 1e-6))
            mel = np.ascontiguousarray(((np.maximum(L, L.max() - 8) + 4) / 4).T, np.float32)
        return mel, *s.nothing()

    def batch(s, T, B, k, strength=0.6, p_stamp=0.2, p_off=0.2):
        """B windows of T frames -> dict of mel, decoder input x, targets y (-100 = ignored), phones ph and their count pl, position offset, guide."""
        r = s.r
        ex = [s.example(T, k, strength, p_stamp) for _ in range(B)]
        if r.random() < 0.3:
            ex[-1] = s.quiet(T)
        x, y, g = pad(ex, s.tk.eot)
        for i, e in enumerate(ex):
            y[i, :2] = -100
            if not e[2]:
                y[i, 0] = s.tk.nosp
        off = 0 if T >= 1400 or r.random() > p_off else int(r.integers(0, 1500 - T // 2))
        if off:  # stamps are absolute: shift them with the window
            for a in (x, y):
                a[a >= s.tk.t0] = np.minimum(a[a >= s.tk.t0] + off, s.tk.t0 + 1500)
        ph = np.zeros((B, max(1, max(len(e[2]) for e in ex))), np.int64)
        for i, e in enumerate(ex):
            ph[i, : len(e[2])] = e[2]
        pl = np.array([len(e[2]) for e in ex])
        return dict(mel=np.stack([e[0] for e in ex]), x=x, y=y, ph=ph, pl=pl, off=off, guide=g)

    def load_text(s):
        """Sentences with phones for text-only steps: text/phones.tsv where it exists, else those of the shards."""
        f = paths.WORK + '/text/phones.tsv'
        rows = [l.rstrip('\n').split('\t') for l in open(f)] if os.path.exists(f) else []
        s.txt = [(t, [PID[q] for q in p.split() if q in PID]) for t, p in rows] or [(u[0], u[1]) for u in s.st.utts['synth']]
        s.txt = sorted((t for t in s.txt if 2 < len(t[1]) < 110), key=lambda t: len(t[1]))

    def text_batch(s, B):
        """Phones with random durations and errors instead of audio -> phone ids p per encoder position, x, y, guide."""
        r, tk = s.r, s.tk
        k = int(r.integers(0, len(s.txt) - B))
        ex = []
        for t, ph in s.txt[k : k + B]:
            ph = np.array(ph)
            u = r.random(len(ph))
            ph = np.where(u < 0.06, r.integers(1, len(PHONES) + 1, len(ph)), ph)
            ph = ph[u < 0.97] if (u < 0.97).sum() > 1 else ph
            a = np.concatenate([np.zeros(int(r.integers(0, 12)), np.int64), np.repeat(ph, r.integers(1, 5, len(ph))), np.zeros(int(r.integers(0, 12)), np.int64)])
            st = np.flatnonzero(a)
            st, en = st[0], st[-1] + 1
            e = tk.encode(' ' + t)
            n = len(e)
            guide = [(st + (i + 0.5) / n * (en - st), 0.12 * (en - st) + 6) for i in range(n)]
            ex.append((a, [tk.sot, tk.en, tk.tr, tk.nots] + e + [tk.eot], [], [(-1, 1)] * 4 + guide + [(-1, 1)]))
        x, y, g = pad(ex, tk.eot)
        y[:, :3] = -100
        p = np.zeros((B, -(-max(len(e[0]) for e in ex) // 64) * 64), np.int64)
        for i, e in enumerate(ex):
            p[i, : len(e[0])] = e[0]
        return dict(p=p, x=x, y=y, guide=g)


def pad(examples, eot):
    """(.., ids, .., guide) tuples -> decoder input, targets (-100 = padding) and guides of one length (at most 448)."""
    n = min(448, -(-(max(len(e[1]) for e in examples) - 1) // 16) * 16)
    x, y, g = np.full((len(examples), n), eot), np.full((len(examples), n), -100), np.full((len(examples), n, 2), -1.0, np.float32)
    g[..., 1] = 1
    for i, (_, ids, _, c) in enumerate(examples):
        ids, c = ids[: n + 1], c[: n + 1]
        x[i, : len(ids) - 1] = ids[:-1]
        y[i, : len(ids) - 1] = ids[1:]
        g[i, : len(c) - 1] = c[1:]
    return x, y, g
