#!/usr/bin/env python3
"""Real human speech (LJ Speech, speechocean762) -> data/real_*.f16/json in resampled copies, and the held-out list.
Held out for evaluation: 25 LJ clips and every fifth adult speaker of speechocean762's part in $PARLEY_DATA -> text/real_heldout.json
($PARLEY_OCEAN names a clone of github.com/jimbozhang/speechocean762: then all of its other speakers, children too, are used).
usage: real_prep.py [list]   (list: only the held-out list)"""

import glob, json, os, subprocess, sys
import numpy as np
import soundfile
import paths, feat
from synth import write_shard

SPEEDS = (0.9, 1.0, 1.1)


def rows(name):
    folder = f'{paths.DATA}/speech/{name}'
    return [[f'{folder}/{f[0]}'] + f[1:] for f in (l.rstrip('\n').split('\t') for l in open(folder + '/transcripts.tsv', encoding='utf-8'))]


def all_clips(clone, skip_speakers, skip_texts):
    """(file, text) of every clip of the full repository but the held-out speakers' and the held-out texts."""
    text = dict(l.split(None, 1) for part in ('train', 'test') for l in open(f'{clone}/{part}/text'))
    for f in sorted(glob.glob(clone + '/WAVE/*/*')):
        speaker, said = f.split('/')[-2][-4:], text.get(os.path.basename(f)[:-4], '').strip()
        if said and speaker not in skip_speakers and said not in skip_texts:
            yield f, said


def sentence(text):
    t = text.replace('"', '').replace('--', ',').strip()
    t = t.lower() if t.isupper() else t
    t = ' '.join('I' if w == 'i' or w.startswith("i'") and len(w) < 2 else w for w in t.split())
    t = t[0].upper() + t[1:]
    return t if t[-1] in '.!?;:,' else t + '.'


def phones(texts):
    lines = ''.join(f'x\tnone\t0\t0\t0\t{t}\n' for t in texts)
    return subprocess.run(['./flite_many'], input=lines, capture_output=True, text=True, check=True).stdout.splitlines()


def make(name, clips):
    clips = [(soundfile.read(f, dtype='float32'), sentence(t)) for f, t in clips if t.isascii()]
    ph = phones([t for _, t in clips])
    for sp in SPEEDS:
        entries = []
        for ((x, sr), t), p in zip(clips, ph):
            x = feat.to16k(x, sr, sp)
            entries.append((t, p.strip(), 'real:' + name, feat.log10_mel(x / max(1e-3, abs(x).max()) * 0.6).astype(np.float16)))
        base = f'data/real_{name}_{round(sp * 100)}'
        print(base, len(entries), write_shard(base, entries), 's', flush=True)


def main():
    lj = [(p, t) for p, _, t in rows('ljspeech')]
    ocean = rows('speechocean762')
    held_speakers = set(sorted({r[1] for r in ocean})[::5])
    held = dict(lj=lj[7::13][:25], ocean=[(p, t) for p, s, _, t in ocean if s in held_speakers])
    with open('text/real_heldout.json', 'w') as f:
        json.dump(held, f, indent=1)
    if 'list' in sys.argv[1:]:
        return
    make('lj', [c for c in lj if c not in held['lj']])
    repo = os.environ.get('PARLEY_OCEAN')
    held_texts = {t for _, t in held['ocean']}
    make('ocean', all_clips(repo, held_speakers, held_texts) if repo else [(p, t) for p, s, _, t in ocean if s not in held_speakers])


if __name__ == '__main__':
    main()
