#!/usr/bin/env python3
"""Baseline: pocketsphinx (Debian pocketsphinx-en-us, default language model) on the first clips of every set -> eval/pocketsphinx.json"""

import json, time, wave
import paths  # noqa: F401 (enters the work folder)
from pocketsphinx import Decoder

M = '/usr/share/pocketsphinx/model/en-us/'
c = Decoder.default_config()
c.set_string('-hmm', M + 'en-us')
c.set_string('-lm', M + 'en-us.lm.bin')
c.set_string('-dict', M + 'cmudict-en-us.dict')
c.set_string('-logfn', '/dev/null')
import os

d = Decoder(c)
refs = json.load(open('eval/refs.json'))
out = json.load(open('eval/pocketsphinx.json')) if os.path.exists('eval/pocketsphinx.json') else {}  # resumes
t0 = time.time()
sec = 0
for k, v in sorted(refs.items(), key=lambda t: (not t[0].startswith('real'), not t[0].startswith('unseen'))):
    if k in ('long_over_60s', 'numbers_slt_rms', 'noise_20dB', 'noise_5dB'):
        continue
    for p, ref in v[: (1 if k.startswith('long') else 8)]:
        if p in out:
            continue
        w = wave.open(p)
        b = w.readframes(w.getnframes())
        sec += len(b) / 32000
        d.start_utt()
        d.process_raw(b, False, True)
        d.end_utt()
        h = d.hyp()
        out[p] = h.hypstr if h else ''
    json.dump(out, open('eval/pocketsphinx.json', 'w'), indent=0)
    print(k, f'{time.time() - t0:.0f}s for {sec:.0f}s audio', flush=True)
