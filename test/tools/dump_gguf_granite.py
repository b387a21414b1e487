"""Writes test/fixtures/gguf/granite-hybrid/: the Granite 4 models of test/fixtures/llama-tiny-random as llama.cpp's own converter writes them in F16,
which loses nothing, since their weights are f16.

  python test/tools/dump_gguf_granite.py LLAMA_CPP

LLAMA_CPP is llama.cpp's source (convert_hf_to_gguf.py, conversion/, gguf-py/), as in the source distribution of PyPI llama-cpp-python under
vendor/llama.cpp. Needs gguf, torch, transformers. Made with llama-cpp-python 0.3.36.
"""
import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

FIXTURES = Path(__file__).parent.parent / "fixtures"
OUT = FIXTURES / "gguf" / "granite-hybrid"
# Layer types as published; the converter does not know what transformers 5 calls them.
TYPES = {"linear_attention": "mamba", "full_attention": "attention"}


def convert(source: Path, folder: Path, out: Path) -> None:
    # The models have no tokenizer, which the converter wants.
    patch = "import runpy, sys; sys.path.insert(0, {0!r}); import conversion.mamba as m; m.Mamba2Model.set_vocab = lambda self: None; "
    run = "sys.argv = ['convert', {1!r}, '--outtype', 'f16', '--outfile', {2!r}]; runpy.run_path({0!r} + '/convert_hf_to_gguf.py', run_name='__main__')"
    subprocess.run([sys.executable, "-c", (patch + run).format(str(source), str(folder), str(out))], check=True, capture_output=True)


def main() -> None:
    OUT.mkdir(parents=True, exist_ok=True)
    for model in sorted((FIXTURES / "llama-tiny-random").glob("granitemoehybrid*")):
        with tempfile.TemporaryDirectory() as temporary:
            # The converter writes the folder's name into the file.
            folder = Path(temporary) / model.name
            folder.mkdir()
            shutil.copy(model / "model.safetensors", folder)
            config = json.loads((model / "config.json").read_text())
            config["layer_types"] = [TYPES[kind] for kind in config["layer_types"]]
            (folder / "config.json").write_text(json.dumps(config))
            convert(Path(sys.argv[1]), folder, OUT / f"{model.name}.gguf")


if __name__ == "__main__":
    main()
