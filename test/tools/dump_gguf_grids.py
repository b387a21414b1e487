"""Writes engine/weights/grid-data.ts: the grids of the IQ types of GGUF, as PyPI `gguf` has them (gguf/quants.py).

  python test/tools/dump_gguf_grids.py    (needs gguf and numpy; made with gguf 0.19.0)

A grid is a list of vectors of 8 or 4 numbers, each of which is one of three or of eight. With the places of the numbers among those, smallest first, as
digits, the last one the highest, a vector is a number in base 3 or 8. Grids are in the order of these numbers, so what is stored is the set of them: a bit
for each number, lowest first, in base64.
"""
import base64
from pathlib import Path

import numpy as np
from gguf.quants import IQ1_S, IQ2_S, IQ2_XS, IQ2_XXS, IQ3_S, IQ3_XXS

OUT = Path(__file__).parent.parent.parent / "engine" / "weights" / "grid-data.ts"
WIDTH = 136
HEAD = '''/**
 * Grids of the IQ types, written by test/tools/dump_gguf_grids.py. The vectors are those of llama.cpp (ggml-common.h, MIT licence), as PyPI
 * `gguf` has them: each is a number in base 3 (IQ1, IQ2) or 8 (IQ3), of which a set of bits says whether it is there.
 */
export const GRID_DATA = {
'''


def packed(kind: type) -> str:
    kind.init_grid()
    length = kind.grid.shape[-1]
    values = kind.grid.reshape(-1)
    levels = sorted(set(values.tolist()))
    assert len(levels) in (3, 8), levels
    digits = np.searchsorted(levels, values).reshape(-1, length)
    numbers = digits @ (len(levels) ** np.arange(length))
    assert (np.diff(numbers) > 0).all(), kind.__name__
    there = np.zeros(len(levels) ** length, dtype=np.uint8)
    there[numbers] = 1
    print(kind.__name__, kind.grid.shape, levels)
    return base64.b64encode(np.packbits(there, bitorder="little").tobytes()).decode()


def main() -> None:
    text = HEAD
    for kind in (IQ1_S, IQ2_XXS, IQ2_XS, IQ2_S, IQ3_XXS, IQ3_S):
        data = packed(kind)
        lines = "\n".join(data[i : i + WIDTH] for i in range(0, len(data), WIDTH))
        text += f"  {kind.__name__}: `\n{lines}`,\n"
    OUT.write_text(text + "} as const;\n")


if __name__ == "__main__":
    main()
