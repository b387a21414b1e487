"""Writes test/fixtures/gguf/blocks.bin and small-blocks.bin with their .json: blocks of every GGUF type that Parley reads, random and at the edges,
and what PyPI `gguf` makes of them in f32; and grids.json, a digest of each grid.

  python test/tools/dump_gguf_blocks.py    (needs gguf and numpy; made with gguf 0.19.0)

A case of a .json says where its stored bytes and its f32 values lie in the .bin beside it.
"""
import hashlib
import json
from pathlib import Path

import numpy as np
from gguf import GGML_QUANT_SIZES, GGMLQuantizationType as Type
from gguf.quants import IQ1_S, IQ2_S, IQ2_XS, IQ2_XXS, IQ3_S, IQ3_XXS, dequantize

OUT = Path(__file__).parent.parent / "fixtures" / "gguf"

# Bytes of a block where its f16 scales lie; the rest may be anything.
SCALES = {
    Type.Q4_0: [0], Type.Q4_1: [0, 2], Type.Q5_0: [0], Type.Q5_1: [0, 2], Type.Q8_0: [0], Type.Q2_K: [80, 82], Type.Q3_K: [108], Type.Q4_K: [0, 2],
    Type.Q5_K: [0, 2], Type.Q6_K: [208], Type.IQ4_NL: [0], Type.IQ4_XS: [0], Type.MXFP4: [],
}
# Types of few bits, in small-blocks. IQ1_M has its scale in the upper nibbles of four 16-bit numbers, the lowest bits first.
SMALL = {
    Type.IQ1_S: [0], Type.IQ1_M: [(49, 51, 53, 55)], Type.IQ2_XXS: [0], Type.IQ2_XS: [0], Type.IQ2_S: [0], Type.IQ3_XXS: [0], Type.IQ3_S: [0],
    Type.TQ1_0: [52], Type.TQ2_0: [64], Type.NVFP4: [],
}
GRIDS = [IQ1_S, IQ2_XXS, IQ2_XS, IQ2_S, IQ3_XXS, IQ3_S]
# Halves as scales: zeros of both signs, the smallest and the largest denormal, the smallest normal, the largest, negative ones.
EDGES = [0x0000, 0x8000, 0x0001, 0x83FF, 0x0400, 0x7BFF, 0xFBFF, 0xBC00]


def put(block: np.ndarray, place: int | tuple[int, ...], bits: int) -> None:
    if isinstance(place, int):
        block[place : place + 2] = [bits & 255, bits >> 8]
        return
    for n, byte in enumerate(place):
        block[byte] = block[byte] & 15 | (bits >> (4 * n) & 15) << 4


def blocks_of(kind: Type, count: int, rng: np.random.Generator) -> np.ndarray:
    size = GGML_QUANT_SIZES[kind][1]
    blocks = rng.integers(0, 256, (count, size), dtype=np.uint8)
    for i, block in enumerate(blocks):
        edge = i < len(EDGES)
        if edge and i % 3:
            block[:] = 0 if i % 3 == 1 else 255
        for k, place in enumerate((SCALES | SMALL)[kind]):
            bits = EDGES[(i + 3 * k) % len(EDGES)] if edge else int(np.float16(rng.normal() * 0.02).view(np.uint16))
            put(block, place, bits)
        if kind == Type.MXFP4:
            # Exponents: zero and one make denormal scales; above 250 the largest values are no numbers of f32.
            block[0] = [0, 1, 2, 127, 250][i] if i < 5 else rng.integers(110, 130)
    return blocks


def plain(kind: Type, rng: np.random.Generator) -> np.ndarray:
    values = np.concatenate([rng.normal(size=40), [0.0, -0.0, 6.0e-8, -6.1e-5, 65504, -65504]]).astype(np.float32)
    if kind == Type.F32:
        return np.concatenate([values, np.array([1e-45, -1e-45, 3.4028235e38], np.float32)]).view(np.uint8)
    if kind == Type.F16:
        return values.astype(np.float16).view(np.uint8)
    return np.concatenate([(values.view(np.uint32) >> 16).astype(np.uint16), np.array([1, 0x8001, 0x7F7F], np.uint16)]).view(np.uint8)


def write(name: str, stored: dict[Type, np.ndarray]) -> None:
    cases, data, at = [], [], 0
    for kind, blocks in stored.items():
        with np.errstate(over="ignore"):
            values = dequantize(blocks.reshape(-1), kind).astype("<f4").reshape(-1)
        assert np.isfinite(values).all(), kind
        raw = blocks.tobytes()
        raw += bytes(-len(raw) % 4)
        cases.append({"type": int(kind), "name": kind.name, "at": at, "bytes": blocks.size, "values": values.size, "valuesAt": at + len(raw)})
        data += [raw, values.tobytes()]
        at += len(raw) + values.nbytes
    (OUT / f"{name}.bin").write_bytes(b"".join(data))
    (OUT / f"{name}.json").write_text("[\n" + ",\n".join(json.dumps(case) for case in cases) + "\n]\n")


def digest(kind: type) -> str:
    kind.init_grid()
    return hashlib.sha256(kind.grid.astype(np.int8).tobytes()).hexdigest()


def main() -> None:
    OUT.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(4711)
    stored = {kind: plain(kind, rng) for kind in (Type.F32, Type.F16, Type.BF16)}
    stored |= {kind: blocks_of(kind, 12 if GGML_QUANT_SIZES[kind][0] == 256 else 24, rng) for kind in SCALES}
    write("blocks", stored)
    rng = np.random.default_rng(4712)
    write("small-blocks", {kind: blocks_of(kind, 10, rng) for kind in SMALL})
    (OUT / "grids.json").write_text(json.dumps({kind.__name__: digest(kind) for kind in GRIDS}, indent=2) + "\n")


if __name__ == "__main__":
    main()
