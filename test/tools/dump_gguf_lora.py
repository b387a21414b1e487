"""Writes test/fixtures/lora-gguf/: adapters of test/fixtures/lora-tiny-random as llama.cpp's own converter writes them, in F32, which loses nothing, and
one of them in F16 and in Q8_0.

  python test/tools/dump_gguf_lora.py LLAMA_CPP

LLAMA_CPP is llama.cpp's source (convert_lora_to_gguf.py, conversion/, gguf-py/), as in the source distribution of PyPI llama-cpp-python under
vendor/llama.cpp. Needs gguf, torch, transformers. Made with llama-cpp-python 0.3.36.
"""
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

FIXTURES = Path(__file__).parent.parent / "fixtures"
OUT = FIXTURES / "lora-gguf"
# By adapter: its base, and the types of the files. The converter knows one rank and one scale for all matrices.
ADAPTERS = {"queries-values": ("llama", ["f32", "f16", "q8_0"]), "one-layer": ("llama", ["f32"]), "qwen3": ("qwen3", ["f32"]), "phi3": ("phi3", ["f32"])}


def convert(source: Path, adapter: str, base: str, kind: str) -> None:
    with tempfile.TemporaryDirectory() as temporary:
        # The converter writes the folders' names into the file.
        folder = Path(temporary) / adapter
        shutil.copytree(FIXTURES / "lora-tiny-random" / adapter, folder, ignore=shutil.ignore_patterns("golden*"))
        out = OUT / f"{adapter}-{kind.upper()}.gguf"
        run = [sys.executable, str(source / "convert_lora_to_gguf.py"), "--base", str(FIXTURES / "llama-tiny-random" / base), "--outtype", kind]
        subprocess.run([*run, "--outfile", str(out), str(folder)], check=True)
        print(out.name, out.stat().st_size, "bytes")


def main() -> None:
    OUT.mkdir(parents=True, exist_ok=True)
    for adapter, (base, kinds) in ADAPTERS.items():
        for kind in kinds:
            convert(Path(sys.argv[1]), adapter, base, kind)


main()
