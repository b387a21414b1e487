#!/usr/bin/python3
"""Deepen the decoder of a checkpoint: new layers copy the last one with zeroed output projections (identity at first). usage: grow.py IN OUT LAYERS"""

import sys, torch

s = torch.load(sys.argv[1], map_location='cpu')
n = s['cfg']['decoder_layers']
N = int(sys.argv[3])
sd = s['net']
for i in range(n, N):
    for k in [k for k in sd if k.startswith(f'model.decoder.layers.{n - 1}.')]:
        v = sd[k].clone()
        if any(z in k for z in ('out_proj', 'fc2')):
            v.zero_()
        elif v.ndim == 2:
            v += torch.randn_like(v) * v.std() * 0.1
        sd[k.replace(f'layers.{n - 1}.', f'layers.{i}.')] = v
s['cfg']['decoder_layers'] = N
s['opt'] = None
torch.save(s, sys.argv[2])
