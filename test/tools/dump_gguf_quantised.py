"""Writes test/fixtures/gguf/quantised.bin: 512 f32 values, then the blocks that PyPI `gguf` quantises them to, Q8_0 and Q4_0.

  python test/tools/dump_gguf_quantised.py    (needs gguf and numpy; made with gguf 0.19.0)
"""
from pathlib import Path

import numpy as np
from gguf import GGMLQuantizationType as Type
from gguf.quants import quantize

rng = np.random.default_rng(4711)
values = (rng.normal(size=(16, 32)) * 0.05).astype(np.float32)
values[0] = 0
values[1] = np.linspace(-127, 127, 32).round() / 2 * 0.01  # halves, which are rounded away from zero
values[2] = 1e-9  # the scale is less than any half
values[3] *= 1e4
values[4, :2] = [0.5, -0.5]  # two of the largest magnitude: the first decides
values[5] = np.arange(32) - 16
blocks = [quantize(values.reshape(-1), kind).tobytes() for kind in (Type.Q8_0, Type.Q4_0)]
out = Path(__file__).parent.parent / "fixtures" / "gguf" / "quantised.bin"
out.write_bytes(values.tobytes() + b"".join(blocks))
