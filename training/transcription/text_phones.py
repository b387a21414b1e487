#!/usr/bin/env python3
"""Phones (flite's front end) of every training sentence -> text/phones.tsv, for the text-only decoder steps; those already there are kept."""

import os
import paths  # noqa: F401 (enters the work folder)
from real_prep import phones

OUT = 'text/phones.tsv'
done = {l.split('\t')[0] for l in open(OUT)} if os.path.exists(OUT) else set()
lines = [t for f in ('text/all.txt', 'text/words.txt', 'text/books.txt') if os.path.exists(f) for t in open(f).read().split('\n')[:-1] if t not in done]
out = phones(lines)
with open(OUT, 'a') as f:
    f.writelines(f'{t}\t{p.strip()}\n' for t, p in zip(lines, out))
print(len(out), 'of', len(lines), 'beside', len(done))
