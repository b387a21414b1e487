#!/usr/bin/env python3
"""Where the checkpoints are lost: an export becomes ckpt/dec.pt and ckpt/pro.pt without optimiser state, from which
`train_decoder.py ... --from_ema` goes on. What an export changes (export.py) is undone.
usage: from_export.py FOLDER [DECODER_STEPS_SO_FAR]"""

import sys, torch
from common import load_export
from shared.work import WORK, save
from voices import APART, NAMES

folder, step = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 0
m, voices = load_export(folder)
style = torch.stack([voices[n] for n in NAMES])
for voice, (other, share) in APART.items():
    a, b = NAMES.index(voice), NAMES.index(other)
    style[a, m.sd :] = (style[a, m.sd :] + share * style[b, m.sd :]) / (1 + share)
with torch.no_grad():  # the predictor's F0 is in 100 Hz while it trains
    m.predictor.F0_proj.weight.div_(100)
    m.predictor.F0_proj.bias.div_(100)


def state(parts, style):
    out = {f"{p}.{k}": t.clone() for p in parts for k, t in getattr(m, p).state_dict().items()}
    return {**out, "style.weight": style.clone()}


save(dict(ema=state(("text_encoder", "decoder"), style), step=step), WORK + "/ckpt/dec.pt")
save(dict(ema=state(("bert", "bert_encoder", "predictor"), style[:, m.sd :]), step=0), WORK + "/ckpt/pro.pt")
print("wrote", WORK + "/ckpt/dec.pt and pro.pt")
