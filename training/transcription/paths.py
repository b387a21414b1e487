"""Lets the scripts of this folder import training/shared, and enters the work folder."""

import os, sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.append(os.path.dirname(HERE))
from shared.work import DATA, MODELS, WORK  # noqa: E402, F401

TMP = os.path.join(WORK, 'tmp')
for d in ('text', 'data', 'ckpt', 'eval', 'out', 'tmp'):
    os.makedirs(os.path.join(WORK, d), exist_ok=True)
os.chdir(WORK)
