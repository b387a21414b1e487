#!/usr/bin/env python3
"""Baseline: word errors of pocketsphinx on the first clips of every set -> eval/pocketsphinx.json (goes on from where it stopped)"""

import json, os, wave
import numpy as np
import paths  # noqa: F401 (enters the work folder)
from shared.words import errors, sphinx

OUT, CLIPS = 'eval/pocketsphinx.json', 8
heard, hear = json.load(open(OUT)) if os.path.exists(OUT) else {}, sphinx()
for name, clips in json.load(open('eval/refs.json')).items():
    wrong = words = 0
    for path, text in clips[:1 if name.startswith('long') else CLIPS]:
        if path not in heard:
            with wave.open(path) as w:
                heard[path] = hear(np.frombuffer(w.readframes(w.getnframes()), np.int16))
        e, n = errors(text, heard[path])
        wrong, words = wrong + e, words + n
    with open(OUT, 'w') as f:
        json.dump(heard, f, indent=0)
    print(f'{name:26s} {100 * wrong / words:.1f} % of {words} words' if words else f'{name:26s} {wrong} words heard', flush=True)
