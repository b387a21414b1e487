#!/usr/bin/env python3
"""Step 2: synthesise text/train.txt with many voices and store un-normalised log10-mel shards (f16) + metadata.
usage: synth.py WORKER NWORKERS [--out data]   (resumable: finished shards are skipped)"""

import os, sys, subprocess, random, json, re, time
import numpy as np
import paths, feat

SHARD = 400
ESP_ACC = [
    'en-us',
    'en-us',
    'en-us',
    'en-us',
    'en-gb',
    'en-gb',
    'en-gb-x-rp',
    'en-029',
    'en-us-nyc',
    'en-gb-x-gbcwmd',
]  # en-gb-scotland is held out
ESP_VAR = 'f1 f2 f3 f4 m1 m2 m3 m4 m5 m6 m7 m8 Alex Alicia Andrea Andy Annie Gene Hugo Lee Marco Mario Michael Mike Jacky belinda benjamin david ed edward john linda max paul rob robert steph travis victor quincy michel boris adam Diogo Denis antonio grandma grandpa'.split()


def pick(r):
    """A random voice with parameters. Held out from training: festival ked_diphone, espeak en-gb-scotland."""
    u = r.random()
    sp = float(np.clip(r.gauss(1.0, 0.09), 0.8, 1.25))
    st = float(np.clip(r.gauss(1.0, 0.13), 0.72, 1.35))
    if u < 0.19:
        return ('flite', 'slt', sp * (0.95 if r.random() < 0.3 else 1), st)
    if u < 0.38:
        return ('flite', 'rms', sp * (1.08 if r.random() < 0.3 else 1), st)
    if u < 0.56:
        return ('flite', 'awb', sp, st)
    if u < 0.61:
        return ('flite', 'kal16', sp, st)
    if u < 0.63:
        return ('flite', 'kal', sp, st)
    if u < 0.70:
        return ('festival', 'cmu_us_slt_arctic_hts', sp, st)
    if u < 0.73:
        return ('festival', 'kal_diphone', sp, st)
    return ('espeak', r.choice(ESP_ACC) + ('+' + r.choice(ESP_VAR) if r.random() < 0.85 else ''), sp, st)


def phones(text):
    o = subprocess.run(['flite', '-voice', 'kal', '-ps', '-t', text, '-o', 'none'], capture_output=True, text=True).stdout
    return o.strip()


def synth(v, text, tmp, r):
    """-> (sr, samples, phone string or '')"""
    kind, name, _, st = v
    if kind == 'flite':
        a = ['flite', '-voice', name, '--setf', f'duration_stretch={st:.3f}', '-ps', '-t', text, '-o', tmp]
        if name.startswith('kal'):
            a[3:3] = ['--setf', f'int_f0_target_mean={r.uniform(75, 210):.0f}', '--setf', f'int_f0_target_stddev={r.uniform(8, 30):.0f}']
        o = subprocess.run(a, capture_output=True, text=True).stdout
        return (*feat.read_wav(tmp), o.strip())
    if kind == 'espeak':
        subprocess.run(
            ['espeak-ng', '-v', name, '-s', str(int(165 / st)), '-p', str(r.randint(20, 80)), '-w', tmp, text], capture_output=True
        )
        return (*feat.read_wav(tmp), '')
    raise ValueError(kind)


def festival_batch(items, tmpdir):
    """items: [(key, voice, stretch, text)] -> writes tmpdir/key.wav with one festival process per voice."""
    for voice in {i[1] for i in items}:
        s = [f'(voice_{voice})']
        for k, vo, st, t in items:
            if vo == voice:
                t = re.sub(r'["\\]', ' ', t)
                s.append(
                    f"(Parameter.set 'Duration_Stretch {st:.3f}) (set! u (utt.synth (Utterance Text \"{t}\"))) (utt.save.wave u \"{tmpdir}/{k}.wav\" 'riff)"
                )
        f = f'{tmpdir}/batch.scm'
        open(f, 'w').write('\n'.join(s))
        subprocess.run(['festival', '-b', f], capture_output=True)


def trim(x, keep=0.06):
    e = np.convolve(np.abs(x), np.ones(160) / 160, 'same')
    th = max(1e-4, e.max() * 0.012)
    i = np.flatnonzero(e > th)
    if len(i) == 0:
        return x
    k = int(keep * 16000)
    return x[max(0, i[0] - k) : i[-1] + k]


def reverb(x, r, npr):
    n = int(16000 * r.uniform(0.08, 0.4))
    t = np.arange(n) / 16000
    h = npr.standard_normal(n).astype(np.float32) * np.exp(-6.9 * t / r.uniform(0.12, 0.6))
    h[: int(16000 * r.uniform(0.001, 0.01))] = 0
    h *= r.uniform(0.15, 0.8) / np.sqrt((h**2).sum() + 1e-9)
    h[0] = 1
    from scipy.signal import fftconvolve

    return fftconvolve(x, h)[: len(x) + 1600].astype(np.float32)


def main():
    w, nw = int(sys.argv[1]), int(sys.argv[2])
    lines = open('text/train.txt').read().split('\n')[:-1]
    os.makedirs('data', exist_ok=True)
    tmpd = f'{paths.TMP}/w{w}'
    os.makedirs(tmpd, exist_ok=True)
    tmp = tmpd + '/a.wav'
    nsh = (len(lines) + SHARD - 1) // SHARD
    for sh in range(w, nsh, nw):
        base = f'data/s{sh:04d}'
        if os.path.exists(base + '.json'):
            continue
        r = random.Random(1000 + sh)
        npr = np.random.RandomState(sh)
        items = [(pick(r), t) for t in lines[sh * SHARD : (sh + 1) * SHARD]]
        fest = [(f'f{i}', v[1], v[3], t) for i, (v, t) in enumerate(items) if v[0] == 'festival']
        if fest:
            festival_batch(fest, tmpd)
        mels, meta, off, sec = [], [], 0, 0.0
        t0 = time.time()
        for i, (v, t) in enumerate(items):
            try:
                if v[0] == 'festival':
                    (sr, x), ph = feat.read_wav(f'{tmpd}/f{i}.wav'), ''
                else:
                    sr, x, ph = synth(v, t, tmp, r)
                if not ph:
                    ph = phones(t)
                x = trim(feat.to16k(x, sr, v[2]))
                if not (0.3 < len(x) / 16000 < 20) or not np.isfinite(x).all() or abs(x).max() < 1e-3:
                    continue
                x = x / abs(x).max() * 0.6
                if r.random() < 0.18:
                    x = reverb(x, r, npr)
                m = feat.log10_mel(x).astype(np.float16)
            except Exception as e:
                print('skip', v, t, repr(e))
                continue
            meta.append(dict(text=t, ph=ph, voice=f'{v[0]}:{v[1]}', off=off, n=len(m)))
            mels.append(m)
            off += len(m)
            sec += len(x) / 16000
        np.concatenate(mels).tofile(base + '.f16')
        json.dump(meta, open(base + '.json.tmp', 'w'))
        os.rename(base + '.json.tmp', base + '.json')
        print(f'{base} {len(meta)} utts {sec:.0f}s audio in {time.time() - t0:.1f}s', flush=True)


main()
