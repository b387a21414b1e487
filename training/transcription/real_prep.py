#!/usr/bin/env python3
"""Step 2b: real human speech (LJ Speech, speechocean762 adults) -> data/real_*.f16/json in several resampled copies.
Held out for evaluation: 25 LJ clips and every fifth speechocean762 speaker -> text/real_heldout.json."""

import json, subprocess
import numpy as np
import soundfile
import paths, feat

SPEEDS = (0.86, 0.93, 1.0, 1.07, 1.14)


def rows(name):
    folder = f'{paths.DATA}/speech/{name}'
    return [[f'{folder}/{f[0]}'] + f[1:] for f in (l.rstrip('\n').split('\t') for l in open(folder + '/transcripts.tsv', encoding='utf-8'))]


def sentence(text):
    t = text.replace('"', '').replace('--', ',').strip()
    t = t.lower() if t.isupper() else t
    return t[0].upper() + t[1:]


def phones(text):
    r = subprocess.run(['flite', '-voice', 'kal', '-ps', '-t', text, '-o', 'none'], capture_output=True, text=True)
    return r.stdout.strip()


def make(name, clips):
    for sp in SPEEDS:
        mels, meta, off = [], [], 0
        for path, text in clips:
            if not text.isascii():
                continue
            x, sr = soundfile.read(path, dtype='float32')
            x = feat.to16k(x, sr, sp)
            m = feat.log10_mel(x / abs(x).max() * 0.6).astype(np.float16)
            t = sentence(text)
            meta.append(dict(text=t, ph=phones(t), voice='real:' + name, off=off, n=len(m)))
            mels.append(m)
            off += len(m)
        base = f'data/real_{name}_{int(sp * 100)}'
        np.concatenate(mels).tofile(base + '.f16')
        json.dump(meta, open(base + '.json', 'w'))
        print(base, len(meta), off / 100, 's')


if __name__ == '__main__':
    lj = [(p, t) for p, _, t in rows('ljspeech')]
    ocean = rows('speechocean762')
    held_speakers = set(sorted({r[1] for r in ocean})[::5])
    held = dict(lj=lj[7::13][:25], ocean=[(p, t) for p, s, _, t in ocean if s in held_speakers])
    json.dump(held, open('text/real_heldout.json', 'w'), indent=1)
    make('lj', [c for c in lj if c not in held['lj']])
    make('ocean', [(p, t) for p, s, _, t in ocean if s not in held_speakers])
