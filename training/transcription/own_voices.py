#!/usr/bin/env python3
"""Sentences in the voices of models/parley-speech, spoken through Parley (speak_own.ts) -> data/own_XXXX.f16/json.
usage: own_voices.py FIRST COUNT   (shards of 200 sentences; a finished shard is skipped)"""

import json, os, random, shutil, subprocess, sys, time
import numpy as np
import paths, feat, synth
from real_prep import phones

SHARD = 200
VOICES = list(json.load(open(paths.HERE + '/../speech/data/voices.json')))


def shard(k, lines):
    base, tmp = f'data/own_{k:04d}', f'{paths.TMP}/own{k}'
    if os.path.exists(base + '.json'):
        return
    t0, r = time.time(), random.Random(7000 + k)
    jobs = [(str(i), VOICES[i % len(VOICES)], t) for i, t in enumerate(r.sample(lines, SHARD))]
    os.makedirs(tmp, exist_ok=True)
    with open(tmp + '/list.tsv', 'w') as f:
        f.writelines('\t'.join(j) + '\n' for j in jobs)
    subprocess.run(['npx', 'tsx', paths.HERE + '/speak_own.ts', os.path.abspath(tmp + '/list.tsv'), os.path.abspath(tmp)], check=True, stdout=subprocess.DEVNULL, cwd=paths.HERE)
    entries = []
    for (i, voice, text), ph in zip(jobs, phones([t for _, _, t in jobs])):
        sr, x = feat.read_wav(f'{tmp}/{i}.wav')
        x = synth.trim(feat.to16k(x, sr, 1.0))
        entries.append((text, ph.strip(), 'own:' + voice, feat.log10_mel(x / abs(x).max() * 0.6).astype(np.float16)))
    print(f'{base} {synth.write_shard(base, entries):.0f}s audio in {time.time() - t0:.0f}s', flush=True)
    shutil.rmtree(tmp)


if __name__ == '__main__':
    first, count = map(int, sys.argv[1:3])
    lines = [l for l in open('text/all.txt').read().split('\n') if 12 < len(l) < 90]
    for k in range(first, first + count):
        shard(k, lines)
