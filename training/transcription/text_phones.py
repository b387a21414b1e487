#!/usr/bin/env python3
"""Step 2c: phones (flite's front end) of every training sentence -> text/phones.tsv, for the text-only decoder steps."""

import subprocess
import paths  # noqa: F401 (enters the work folder)

lines = open('text/all.txt').read().split('\n')[:-1]
jobs = ''.join(f'x\tnone\t0\t0\t0\t{t}\n' for t in lines)
out = subprocess.run(['./flite_many'], input=jobs, capture_output=True, text=True, check=True).stdout.splitlines()
with open('text/phones.tsv', 'w') as f:
    f.writelines(f'{t}\t{p.strip()}\n' for t, p in zip(lines, out))
print(len(out), 'of', len(lines))
