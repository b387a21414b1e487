#!/usr/bin/env python3
"""Loss curves of a training log as a picture.  usage: plot_log.py out.png NAME=REGEX ... < log   (REGEX with one group; default: the speech decoder's)"""

import re, sys
import matplotlib

matplotlib.use('Agg')
import matplotlib.pyplot as plt

out = sys.argv[1]
wanted = dict(a.split('=', 1) for a in sys.argv[2:]) or {k: rf' {k} ([0-9.]+)' for k in ('log', 'sc', 'mel', 'aux-mel')}
curves = {k: ([], []) for k in wanted}
for line in sys.stdin:
    step = re.search(r'step (\d+)', line)
    for name, pattern in wanted.items():
        m = re.search(pattern, line)
        if step and m:
            curves[name][0].append(int(step[1]))
            curves[name][1].append(float(m[1]))
plt.figure(figsize=(9, 5))
for name, (x, y) in curves.items():
    plt.plot(x, y, label=name)
plt.xlabel('step')
plt.legend()
plt.grid(alpha=0.3)
plt.savefig(out, dpi=80, bbox_inches='tight')
