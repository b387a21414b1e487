#!/usr/bin/env python3
"""Makes test/fixtures/ctranslate2-tiny-random: one tiny random Whisper as transformers saves it and as CTranslate2's own converter writes it.

    python3 test/tools/dump_ctranslate2.py

Needs torch, transformers, ctranslate2, safetensors. `huggingface/` is the origin; each other folder is a conversion in the storage of its name.
Only float32/ has a tokenizer.json; the others' list of tokens must do. `int8_wide/` is another Whisper, whose rows are wide enough for kernels that multiply with
int8.
"""
import json
import os
import shutil
import tempfile

import ctranslate2
import torch
from transformers import GenerationConfig, WhisperConfig, WhisperFeatureExtractor, WhisperForConditionalGeneration, WhisperTokenizerFast

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "fixtures", "ctranslate2-tiny-random")
STORAGES = ("float32", "float16", "bfloat16", "int16", "int8", "int8_float16")
SEED = 20261123
POSITIONS = 75  # windows of 1.5 s


def bytes_to_unicode():
    """GPT-2's letters for the bytes."""
    bs = [*range(33, 127), *range(161, 173), *range(174, 256)]
    cs = bs[:]
    for b in range(256):
        if b not in bs:
            bs.append(b)
            cs.append(256 + len(cs) - 188)
    return [chr(c) for c in cs]


def write_tokenizer(folder):
    tokens = bytes_to_unicode()
    merges = []
    for a, b in (("Ġ", "t"), ("h", "e"), ("Ġt", "he"), ("i", "n"), ("Ġ", "a"), ("in", "g"), ("Ġa", "n"), ("Ġan", "d"), ("t", "i"), ("ti", "on")):
        if a in tokens and b in tokens:
            merges.append(f"{a} {b}")
            tokens.append(a + b)
    special = ["<|endoftext|>", "<|startoftranscript|>", "<|en|>", "<|de|>", "<|translate|>", "<|transcribe|>", "<|startoflm|>", "<|startofprev|>", "<|nospeech|>", "<|notimestamps|>"]
    vocab = {t: i for i, t in enumerate(tokens)}
    with open(os.path.join(folder, "vocab.json"), "w") as f:
        json.dump(vocab, f, ensure_ascii=False)
    with open(os.path.join(folder, "merges.txt"), "w") as f:
        f.write("#version: 0.2\n" + "\n".join(merges) + "\n")
    tokenizer = WhisperTokenizerFast(vocab=vocab, merges=[tuple(m.split(" ")) for m in merges], unk_token="<|endoftext|>", bos_token="<|endoftext|>", eos_token="<|endoftext|>")
    tokenizer.add_special_tokens({"additional_special_tokens": special[1:]})
    tokenizer.add_tokens([])
    tokenizer.save_pretrained(folder)
    # transformers renumbers; the file says what we mean.
    path = os.path.join(folder, "tokenizer.json")
    data = json.load(open(path))
    data["model"]["vocab"] = vocab
    data["model"]["merges"] = [m.split(" ") for m in merges]
    data["added_tokens"] = [{"id": len(tokens) + i, "content": t, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True} for i, t in enumerate(special)]
    data["post_processor"] = None
    json.dump(data, open(path, "w"), ensure_ascii=False)
    ids = {t: len(tokens) + i for i, t in enumerate(special)}
    return ids, len(tokens) + len(special) + POSITIONS + 1


def random_whisper(vocabulary, ids, alignment, **sizes):
    """A Whisper with random weights of a scale at which tokens differ."""
    eos, start = ids["<|endoftext|>"], ids["<|startoftranscript|>"]
    config = WhisperConfig(
        vocab_size=vocabulary, num_mel_bins=20, max_source_positions=POSITIONS, max_target_positions=60, eos_token_id=eos, bos_token_id=eos, pad_token_id=eos,
        decoder_start_token_id=start, suppress_tokens=[], begin_suppress_tokens=[], forced_decoder_ids=None, attn_implementation="eager", **sizes,
    )  # fmt: skip
    model = WhisperForConditionalGeneration(config).eval()
    with torch.no_grad():
        for name, p in model.named_parameters():
            if p.dim() > 1 and "embed_positions" not in name:
                p.normal_(0, 2.5 / p.shape[1] ** 0.5 if p.dim() == 2 else 0.15)
            elif p.dim() == 1:
                p.normal_(1.0 if name.endswith("norm.weight") else 0.0, 0.1)
    suppress = [1, 5, 9]
    model.generation_config = GenerationConfig(
        eos_token_id=eos, bos_token_id=eos, pad_token_id=eos, decoder_start_token_id=start, suppress_tokens=suppress, begin_suppress_tokens=[220, eos],
        no_timestamps_token_id=ids["<|notimestamps|>"], is_multilingual=False, alignment_heads=alignment,
        lang_to_id={"<|en|>": ids["<|en|>"], "<|de|>": ids["<|de|>"]},
    )
    return model


def main():
    torch.manual_seed(SEED)
    work = tempfile.mkdtemp()
    ids, vocabulary = write_tokenizer(work)
    narrow = {"d_model": 24, "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 2, "decoder_attention_heads": 3, "encoder_ffn_dim": 40, "decoder_ffn_dim": 56}
    model = random_whisper(vocabulary, ids, [[0, 1], [1, 2]], **narrow)
    features = WhisperFeatureExtractor(feature_size=20, n_fft=400, hop_length=160, chunk_length=1.5, sampling_rate=16000)
    features.n_samples, features.nb_max_frames = 24000, 150
    model.save_pretrained(work)
    features.save_pretrained(work)

    shutil.rmtree(ROOT, ignore_errors=True)
    os.makedirs(os.path.join(ROOT, "huggingface"))
    for name in ("config.json", "generation_config.json", "preprocessor_config.json", "tokenizer.json", "model.safetensors"):
        shutil.copy(os.path.join(work, name), os.path.join(ROOT, "huggingface", name))
    for storage in STORAGES:
        out = os.path.join(ROOT, storage)
        ctranslate2.converters.TransformersConverter(work, copy_files=["tokenizer.json"]).convert(out, quantization=storage)
        if storage != "float32":
            os.remove(os.path.join(out, "tokenizer.json"))

    wide = {"d_model": 64, "encoder_layers": 1, "decoder_layers": 2, "encoder_attention_heads": 1, "decoder_attention_heads": 1, "encoder_ffn_dim": 96, "decoder_ffn_dim": 128}
    random_whisper(vocabulary, ids, [[0, 0], [1, 0]], **wide).save_pretrained(work)
    out = os.path.join(ROOT, "int8_wide")
    ctranslate2.converters.TransformersConverter(work, copy_files=["tokenizer.json"]).convert(out, quantization="int8")


if __name__ == "__main__":
    main()
