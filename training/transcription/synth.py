#!/usr/bin/env python3
"""Synthesise text/all.txt with many voices and store un-normalised log10-mel shards (f16) + metadata.
usage: synth.py WORKER NWORKERS [--minutes M] [--first SHARD] [--share slt=0.2,...] [--plain P]
Resumable: finished shards are skipped; --first begins at a later shard, for sentences not heard yet; --share and --plain say what to hear more of.
Held out from training: festival ked_diphone and kal_diphone, espeak en-gb-scotland and the variant gustave."""

import argparse, json, os, random, re, subprocess, time
import numpy as np
from scipy.signal import fftconvolve
import paths, feat
from shared.htsvoice import edit_htsvoice
from shared.sections import Sections

SHARD = 400
ESPEAK = Sections(paths.HERE + '/data/espeak.txt')  # accents and variants, some more often
HTS_SPEAKERS = 8  # new speakers a shard, bent out of the festival HTS voice


def pick(r, share, plain):
    """A random engine or voice (share: {name: weight}), the playback speed (moves pitch and formants too) and the duration stretch."""
    name = r.choices(list(share), list(share.values()))[0]
    if r.random() < plain:
        return name, 1.0, 1.0
    return name, float(np.clip(r.gauss(1.0, 0.09), 0.8, 1.25)), float(np.clip(r.gauss(1.0, 0.13), 0.72, 1.35))


def flite(jobs, r):
    """jobs: [(wav, voice or 'none', stretch, text)] -> the phones of each; the waves are written."""
    lines = []
    for wav, v, st, t in jobs:
        f0 = sd = 0
        if v in ('slt', 'awb', 'kal16') and st != 1.0 and r.random() < 0.6:
            f0 = r.uniform(120, 230) if v == 'slt' else r.uniform(90, 190) if v == 'awb' else r.uniform(75, 210)
            sd = f0 * r.uniform(0.05, 0.18)
        lines.append(f'{wav}\t{v}\t{f0:.0f}\t{sd:.0f}\t{st:.3f}\t{t}\n')
    out = subprocess.run(['./flite_many'], input=''.join(lines), capture_output=True, text=True, check=True).stdout
    return [l.strip() for l in out.splitlines()]


def festival(jobs, tmp, r):
    """jobs: [(wav, stretch, text)] in HTS_SPEAKERS new speakers: log-F0 mean and range, formants and rate are bent in the voice file."""
    scm = ['(voice_cmu_us_slt_arctic_hts)']
    for k in range(HTS_SPEAKERS):
        if r.random() < 0.12:
            alpha, f0, span = 0.45, 1.0, 1.0  # the voice itself
        else:
            alpha = r.uniform(0.39, 0.54)
            f0 = float(np.exp(np.interp(alpha, [0.39, 0.54], [0.25, -0.65]) + r.gauss(0, 0.16)))
            span = r.uniform(0.5, 1.5)
        vf = f'{tmp}/{k}.htsvoice'
        edit_htsvoice(vf, alpha, f0, span)
        for wav, st, t in jobs[k::HTS_SPEAKERS]:
            scm.append(f"(set! hts_engine_params '((\"-m\" \"{vf}\") (\"-g\" 0.0) (\"-b\" 0.0) (\"-u\" 0.5) (\"-r\" {1 / st:.3f})))")
            text = re.sub(r'["\\]', ' ', t)
            scm.append(f'(utt.save.wave (utt.synth (Utterance Text "{text}")) "{wav}" \'riff)')
    with open(f'{tmp}/batch.scm', 'w') as f:
        f.write('\n'.join(scm))
    subprocess.run(['festival', '-b', f'{tmp}/batch.scm'], capture_output=True)


def espeak(wav, stretch, text, r):
    v = r.choice(ESPEAK['accents']) + ('+' + r.choice(ESPEAK['variants']) if r.random() < 0.85 else '')
    subprocess.run(['espeak-ng', '-v', v, '-s', str(int(165 / stretch)), '-p', str(r.randint(20, 80)), '-w', wav, text], capture_output=True)


def trim(x, keep=0.06):
    e = np.convolve(np.abs(x), np.ones(160) / 160, 'same')
    i = np.flatnonzero(e > max(1e-4, e.max() * 0.012))
    k = int(keep * 16000)
    return x[max(0, i[0] - k) : i[-1] + k] if len(i) else x


def reverb(x, r, npr):
    n = int(16000 * r.uniform(0.08, 0.4))
    t = np.arange(n) / 16000
    h = npr.standard_normal(n).astype(np.float32) * np.exp(-6.9 * t / r.uniform(0.12, 0.6))
    h[: int(16000 * r.uniform(0.001, 0.01))] = 0
    h *= r.uniform(0.15, 0.8) / np.sqrt((h**2).sum() + 1e-9)
    h[0] = 1
    return fftconvolve(x, h)[: len(x) + 1600].astype(np.float32)


def write_shard(base, entries):
    """entries: [(text, phones, voice, mel)] -> base.f16 and base.json (the latter last: a shard counts once it is complete)."""
    meta, off = [], 0
    for text, ph, voice, m in entries:
        meta.append(dict(text=text, ph=ph, voice=voice, off=off, n=len(m)))
        off += len(m)
    np.concatenate([e[3] for e in entries]).tofile(base + '.f16')
    with open(base + '.json.tmp', 'w') as f:
        json.dump(meta, f)
    os.rename(base + '.json.tmp', base + '.json')
    return off / 100


def shard(lines, base, tmp, seed, share, plain):
    r, npr, t0 = random.Random(seed), np.random.RandomState(seed), time.time()
    items = [(f'{tmp}/{i}.wav', *pick(r, share, plain), t) for i, t in enumerate(lines)]
    for wav, *_ in items:
        if os.path.exists(wav):
            os.remove(wav)
    own = ('hts', 'espeak')
    ph = flite([(wav, 'none' if v in own else v, st, t) for wav, v, _, st, t in items], r)
    festival([(wav, st, t) for wav, v, _, st, t in items if v == 'hts'], tmp, r)
    out = []
    for (wav, v, sp, st, t), p in zip(items, ph):
        if v == 'espeak':
            espeak(wav, st, t, r)
        try:
            sr, x = feat.read_wav(wav)
            x = trim(feat.to16k(x, sr, sp if v != 'hts' else 1.0))
            if not (0.3 < len(x) / 16000 < 20) or not np.isfinite(x).all() or abs(x).max() < 1e-3:
                continue
            x = x / abs(x).max() * 0.6
            out.append((t, p, v, feat.log10_mel(reverb(x, r, npr) if r.random() < 0.25 else x).astype(np.float16)))
        except (ValueError, OSError, IndexError) as e:
            print('skip', v, t, repr(e))
    sec = write_shard(base, out)
    print(f'{base} {len(out)} utts {sec:.0f}s audio in {time.time() - t0:.1f}s', flush=True)


def main():
    ap = argparse.ArgumentParser()
    A = ap.add_argument
    A('worker', type=int)
    A('workers', type=int)
    A('--minutes', type=float, default=1e6)
    A('--first', type=int, default=0)
    A('--share', default='slt=0.15,rms=0.09,awb=0.13,kal16=0.14,hts=0.29,espeak=0.20', help='of the sentences, by voice or engine')
    A('--plain', type=float, default=0.3, help='share of the sentences without a change of speed; a flite voice keeps its own pitch then too')
    a = ap.parse_args()
    share = {v: float(p) for v, p in (x.split('=') for x in a.share.split(','))}
    end = time.time() + 60 * a.minutes
    lines = open('text/all.txt').read().split('\n')[:-1]
    tmp = f'{paths.TMP}/w{a.worker}'
    os.makedirs(tmp, exist_ok=True)
    for sh in range(a.first + a.worker, (len(lines) + SHARD - 1) // SHARD, a.workers):
        base = f'data/s{sh:04d}'
        if time.time() > end:
            break
        if not os.path.exists(base + '.json'):
            shard(lines[sh * SHARD : (sh + 1) * SHARD], base, tmp, 1000 + sh, share, a.plain)


if __name__ == '__main__':
    main()
