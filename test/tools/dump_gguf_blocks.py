"""Writes test/fixtures/gguf/blocks.bin and blocks.json: blocks of every GGUF type that Parley reads, random and at the edges, and what PyPI `gguf`
makes of them in f32.

  python test/tools/dump_gguf_blocks.py    (needs gguf and numpy; made with gguf 0.19.0)

A case of blocks.json says where its stored bytes and its f32 values lie in blocks.bin.
"""
import json
from pathlib import Path

import numpy as np
from gguf import GGML_QUANT_SIZES, GGMLQuantizationType as Type
from gguf.quants import dequantize

OUT = Path(__file__).parent.parent / "fixtures" / "gguf"
rng = np.random.default_rng(4711)

# Bytes of a block where its f16 scales lie; the rest may be anything.
SCALES = {
    Type.Q4_0: [0], Type.Q4_1: [0, 2], Type.Q5_0: [0], Type.Q5_1: [0, 2], Type.Q8_0: [0], Type.Q2_K: [80, 82], Type.Q3_K: [108], Type.Q4_K: [0, 2],
    Type.Q5_K: [0, 2], Type.Q6_K: [208], Type.IQ4_NL: [0], Type.IQ4_XS: [0], Type.MXFP4: [],
}
# Halves as scales: zeros of both signs, the smallest and the largest denormal, the smallest normal, the largest, negative ones.
EDGES = [0x0000, 0x8000, 0x0001, 0x83FF, 0x0400, 0x7BFF, 0xFBFF, 0xBC00]


def blocks_of(kind: Type, count: int) -> np.ndarray:
    size = GGML_QUANT_SIZES[kind][1]
    blocks = rng.integers(0, 256, (count, size), dtype=np.uint8)
    at = SCALES[kind]
    for i, block in enumerate(blocks):
        edge = i < len(EDGES)
        for k, byte in enumerate(at):
            bits = EDGES[(i + 3 * k) % len(EDGES)] if edge else int(np.float16(rng.normal() * 0.02).view(np.uint16))
            block[byte : byte + 2] = [bits & 255, bits >> 8]
        others = [b for b in range(size) if not any(a <= b < a + 2 for a in at)]
        if edge and i % 3 == 1:
            block[others] = 0
        if edge and i % 3 == 2:
            block[others] = 255
        if kind == Type.MXFP4:
            # Exponents: zero and one make denormal scales; above 250 the largest values are no numbers of f32.
            block[0] = [0, 1, 2, 127, 250][i] if i < 5 else rng.integers(110, 130)
    return blocks


def plain(kind: Type) -> np.ndarray:
    values = np.concatenate([rng.normal(size=40), [0.0, -0.0, 6.0e-8, -6.1e-5, 65504, -65504]]).astype(np.float32)
    if kind == Type.F32:
        return np.concatenate([values, np.array([1e-45, -1e-45, 3.4028235e38], np.float32)]).view(np.uint8)
    if kind == Type.F16:
        return values.astype(np.float16).view(np.uint8)
    return np.concatenate([(values.view(np.uint32) >> 16).astype(np.uint16), np.array([1, 0x8001, 0x7F7F], np.uint16)]).view(np.uint8)


def main() -> None:
    OUT.mkdir(parents=True, exist_ok=True)
    cases, data, at = [], [], 0
    for kind in [Type.F32, Type.F16, Type.BF16, *SCALES]:
        stored = blocks_of(kind, 12 if GGML_QUANT_SIZES[kind][0] == 256 else 24) if kind in SCALES else plain(kind)
        with np.errstate(over="ignore"):
            values = dequantize(stored.reshape(-1), kind).astype("<f4").reshape(-1)
        assert np.isfinite(values).all(), kind
        raw = stored.tobytes()
        raw += bytes(-len(raw) % 4)
        cases.append({"type": int(kind), "name": kind.name, "at": at, "bytes": stored.size, "values": values.size, "valuesAt": at + len(raw)})
        data += [raw, values.tobytes()]
        at += len(raw) + values.nbytes
    (OUT / "blocks.bin").write_bytes(b"".join(data))
    (OUT / "blocks.json").write_text("[\n" + ",\n".join(json.dumps(case) for case in cases) + "\n]\n")


if __name__ == "__main__":
    main()
