"""Where the recipe reads and writes: $PARLEY_DATA (training and test data), $PARLEY_WORK (everything made here; becomes the current folder)."""

import os

HERE = os.path.dirname(os.path.abspath(__file__))
DATA = os.path.abspath(os.environ.get('PARLEY_DATA', os.path.join(HERE, '../../../shared/data')))
WORK = os.path.abspath(os.environ.get('PARLEY_WORK', os.path.join(HERE, 'work')))
TMP = os.path.join(WORK, 'tmp')
for d in ('text', 'data', 'ckpt', 'eval', 'out', 'tmp'):
    os.makedirs(os.path.join(WORK, d), exist_ok=True)
os.chdir(WORK)
