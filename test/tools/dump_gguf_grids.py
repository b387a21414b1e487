"""Writes engine/weights/grid-data.ts: the grids of the IQ types of GGUF, as PyPI `gguf` has them (gguf/quants.py).

  python test/tools/dump_gguf_grids.py    (needs gguf and numpy; made with gguf 0.19.0)

A grid is a list of vectors of 8 or 4 numbers, each of which is one of three or of eight. Stored are the places of the numbers among those, smallest
first: 2 bits each for three, 4 bits each for eight, the first number in the lowest bits, in base64.
"""
import base64
from pathlib import Path

import numpy as np
from gguf.quants import IQ1_S, IQ2_S, IQ2_XS, IQ2_XXS, IQ3_S, IQ3_XXS

OUT = Path(__file__).parent.parent.parent / "engine" / "weights" / "grid-data.ts"
WIDTH = 136
HEAD = '''/**
 * Grids of the IQ types, written by test/tools/dump_gguf_grids.py. The vectors are those of llama.cpp (ggml-common.h, MIT licence), as PyPI
 * `gguf` has them: digits of 2 bits (IQ1, IQ2) or 4 bits (IQ3) in base64, the first in the lowest bits.
 */
export const GRID_DATA = {
'''


def packed(kind: type) -> str:
    kind.init_grid()
    values = kind.grid.reshape(-1)
    levels = sorted(set(values.tolist()))
    digits = np.searchsorted(levels, values).astype(np.uint8)
    if len(levels) == 3:
        quads = digits.reshape(-1, 4)
        data = quads[:, 0] | quads[:, 1] << 2 | quads[:, 2] << 4 | quads[:, 3] << 6
    else:
        assert len(levels) == 8, levels
        pairs = digits.reshape(-1, 2)
        data = pairs[:, 0] | pairs[:, 1] << 4
    print(kind.__name__, kind.grid.shape, levels)
    return base64.b64encode(data.astype(np.uint8).tobytes()).decode()


def main() -> None:
    text = HEAD
    for kind in (IQ1_S, IQ2_XXS, IQ2_XS, IQ2_S, IQ3_XXS, IQ3_S):
        data = packed(kind)
        lines = "\n".join(data[i : i + WIDTH] for i in range(0, len(data), WIDTH))
        text += f"  {kind.__name__}: `\n{lines}`,\n"
    OUT.write_text(text + "} as const;\n")


if __name__ == "__main__":
    main()
