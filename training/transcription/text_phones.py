#!/usr/bin/env python3
"""Phones (flite front end) of the sentences that were not synthesised -> text/phones.tsv, for the text-only decoder steps. Appends; resumable."""

import subprocess, os, sys
import paths  # noqa: F401 (enters the work folder)

L = open('text/train.txt').read().split('\n')[:-1]
start = int(sys.argv[1])
out = 'text/phones.tsv'
done = sum(1 for _ in open(out)) if os.path.exists(out) else 0
with open(out, 'a') as f:
    for t in L[start + done :]:
        f.write(
            t
            + '\t'
            + subprocess.run(['flite', '-voice', 'kal', '-ps', '-t', t, '-o', 'none'], capture_output=True, text=True)
            .stdout.strip()
            .replace('\n', ' ')
            + '\n'
        )
        f.flush()
