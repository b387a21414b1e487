#!/usr/bin/env python3
"""Phones (flite's front end) of every training sentence -> text/phones.tsv, for the text-only decoder steps; those already there are kept."""

import os, subprocess
import paths  # noqa: F401 (enters the work folder)

OUT = 'text/phones.tsv'
done = {l.split('\t')[0] for l in open(OUT)} if os.path.exists(OUT) else set()
lines = [t for f in ('text/all.txt', 'text/words.txt', 'text/books.txt') if os.path.exists(f) for t in open(f).read().split('\n')[:-1] if t not in done]
jobs = ''.join(f'x\tnone\t0\t0\t0\t{t}\n' for t in lines)
out = subprocess.run(['./flite_many'], input=jobs, capture_output=True, text=True, check=True).stdout.splitlines()
with open(OUT, 'a') as f:
    f.writelines(f'{t}\t{p.strip()}\n' for t, p in zip(lines, out))
print(len(out), 'of', len(lines), 'beside', len(done))
