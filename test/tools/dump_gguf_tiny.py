"""Writes test/fixtures/gguf/tiny/: a random Llama (SentencePiece, Llama 3's scaling) and a random Qwen3 (byte-level BPE), converted and quantised by
llama.cpp itself to F16, Q8_0 and Q4_K_M, and what transformers gives in f32 on the dequantised weights.

  python test/tools/dump_gguf_tiny.py LLAMA_CPP LIBRARIES

LLAMA_CPP is llama.cpp's source (convert_hf_to_gguf.py, conversion/, gguf-py/), as in the source distribution of PyPI llama-cpp-python under
vendor/llama.cpp; LIBRARIES a folder with its shared libraries, as in npm @node-llama-cpp/linux-x64. Needs gguf, torch, transformers, sentencepiece.
Made with llama-cpp-python 0.3.36, @node-llama-cpp/linux-x64 3.22.1 (llama.cpp v0.5.0), gguf 0.19.0, torch 2.15.0, transformers 5.23.0.
"""
import ctypes
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import sentencepiece
import torch
from safetensors.torch import save_file
from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers
from transformers import AutoConfig, AutoModelForCausalLM, PreTrainedTokenizerFast

from dump_gguf_greedy import load

OUT = Path(__file__).parent.parent / "fixtures" / "gguf" / "tiny"
TEXT = "the sea was calm and the small boat went over the water, 12 days and 30 nights; she said that's all they had.\n"
PROMPT = "the boat said:  that's 12 days\nand the sea"
# K-quants want rows of 256; those of 32 and 64 become other types, as in real files.
SHAPE = dict(hidden_size=256, intermediate_size=64, num_attention_heads=2, num_key_value_heads=1, head_dim=16, max_position_embeddings=512, rms_norm_eps=1e-5)
# llama_ftype
FTYPES = {"Q8_0": 7, "Q4_K_M": 15}
LLAMA3 = {"rope_type": "llama3", "rope_theta": 10000.0, "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 64}
QWEN2 = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"


def llama_tokenizer(folder: Path) -> tuple[int, list[int]]:
    (folder / "text.txt").write_text(TEXT * 50)
    sentencepiece.SentencePieceTrainer.train(
        input=str(folder / "text.txt"), model_prefix=str(folder / "tokenizer"), model_type="bpe", vocab_size=310, byte_fallback=True,
        hard_vocab_limit=False, normalization_rule_name="identity", remove_extra_whitespaces=False, split_digits=True, minloglevel=2,
    )
    pieces = sentencepiece.SentencePieceProcessor(str(folder / "tokenizer.model"))
    return pieces.vocab_size(), [pieces.bos_id(), *pieces.encode(PROMPT)]


def qwen_tokenizer(folder: Path) -> tuple[int, list[int]]:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Split(Regex(QWEN2), "isolated"), pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]
    )
    tokenizer.decoder = decoders.ByteLevel()
    special = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
    tokenizer.train_from_iterator([TEXT, "abcdefghijklmnopqrstuvwxyz:0123456789"], trainers.BpeTrainer(vocab_size=80, show_progress=False))
    tokenizer.add_special_tokens(special)
    template = "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}<|im_start|>assistant\n"
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="<|im_end|>", pad_token="<|endoftext|>", chat_template=template)
    fast.save_pretrained(folder)
    return len(fast), fast(PROMPT).input_ids


def convert(source: Path, folder: Path, out: Path) -> None:
    # The converter knows byte-level tokenizers by a hash of what they make of a text; this one is nobody's.
    patch = "import runpy, sys; sys.path.insert(0, {0!r}); import conversion.base as b; b.TextModel.get_vocab_base_pre = lambda *_: 'qwen2'; "
    run = "sys.argv = ['convert', {1!r}, '--outtype', 'f16', '--outfile', {2!r}]; runpy.run_path({0!r} + '/convert_hf_to_gguf.py', run_name='__main__')"
    subprocess.run([sys.executable, "-c", (patch + run).format(str(source), str(folder), str(out))], check=True, capture_output=True)


def quantise(libraries: Path, source: Path, out: Path, ftype: int) -> None:
    class Params(ctypes.Structure):  # llama_model_quantize_params: the first two fields are what is set
        _fields_ = [("threads", ctypes.c_int32), ("ftype", ctypes.c_int32), ("rest", ctypes.c_uint8 * 248)]

    for name in ["libggml-base.so*", "libggml.*so*", "libllama.*so*"]:
        library = ctypes.CDLL(str(sorted(libraries.glob(name))[0]), mode=ctypes.RTLD_GLOBAL)
    library.llama_model_quantize_default_params.restype = Params
    params = library.llama_model_quantize_default_params()
    params.threads, params.ftype = 1, ftype
    library.llama_model_quantize.argtypes = [ctypes.c_char_p, ctypes.c_char_p, ctypes.POINTER(Params)]
    assert library.llama_model_quantize(str(source).encode(), str(out).encode(), ctypes.byref(params)) == 0


def main() -> None:
    source, libraries = Path(sys.argv[1]), Path(sys.argv[2])
    OUT.mkdir(parents=True, exist_ok=True)
    golden, logits = {}, {}
    for name, layers, tokenizer, rope in [("llama", 1, llama_tokenizer, LLAMA3), ("qwen3", 2, qwen_tokenizer, None)]:
        with tempfile.TemporaryDirectory() as temporary:
            folder = Path(temporary)
            vocabulary, ids = tokenizer(folder)
            torch.manual_seed(4711)
            extra = {"rope_parameters": rope} if rope else {}
            config = AutoConfig.for_model(name, **SHAPE, num_hidden_layers=layers, vocab_size=vocabulary, tie_word_embeddings=True, initializer_range=0.08, **extra)
            AutoModelForCausalLM.from_config(config).float().save_pretrained(folder)
            files = {"F16": OUT / f"{name}-F16.gguf"}
            convert(source, folder, files["F16"])
            for kind, ftype in FTYPES.items():
                files[kind] = OUT / f"{name}-{kind}.gguf"
                quantise(libraries, files["F16"], files[kind], ftype)
        golden[name] = {"prompt": PROMPT, "prompt_ids": ids}
        for kind, file in files.items():
            with torch.no_grad():
                logits[f"{name}-{kind}"] = load(str(file), rope)(torch.tensor([ids])).logits[0].contiguous()
    (OUT / "golden.json").write_text(json.dumps(golden, indent=1) + "\n")
    save_file(logits, str(OUT / "golden.safetensors"))


if __name__ == "__main__":
    main()
