#!/usr/bin/env python3
"""Makes test/fixtures/kokoro-formats: one tiny random Kokoro in the formats that Kokoro is published in, written by the tools that write those.

    python3 test/tools/dump_kokoro_formats.py

Needs torch, transformers, safetensors, onnx, onnxscript, onnxruntime and the `kokoro` package (modules.py, istftnet.py, custom_stft.py). `safetensors/` is the
origin, `onnx/` and `onnx-int8/` are torch's export and ONNX Runtime's quantisation of it (gzipped,
because a tiny model's graph is larger than its weights), `pth/` is what torch.save writes, with voices as .pt.
"""
import gzip
import json
import os
import shutil

import numpy as np
import onnx
import torch
from onnxruntime.quantization import QuantType, quantize_dynamic
from safetensors.torch import save_file

import dump_kokoro
from check_checkpoints import ReferenceKokoro

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.join(HERE, "..", "fixtures", "kokoro-formats")
SEED = 23
CONFIG = {
    **dump_kokoro.CONFIG, "hidden_dim": 16, "max_conv_dim": 16, "max_dur": 5, "n_layer": 2, "n_token": 32, "style_dim": 8, "decoder_dim": 20, "asr_res_dim": 8,
    "istftnet": {
        "upsample_kernel_sizes": [6, 9], "upsample_rates": [2, 3], "gen_istft_hop_size": 5, "gen_istft_n_fft": 20,
        "resblock_dilation_sizes": [[1, 3, 5]], "resblock_kernel_sizes": [3], "upsample_initial_channel": 16,
    },
    "plbert": {
        "hidden_size": 16, "num_attention_heads": 2, "intermediate_size": 20, "max_position_embeddings": 64, "num_hidden_layers": 2, "dropout": 0.1, "embedding_size": 12,
    },
}  # fmt: skip


class Encoder(torch.nn.Module):
    """What comes before the frames; named and called as in the published export."""

    def __init__(self, model):
        super().__init__()
        self.bert, self.bert_encoder, self.predictor, self.text_encoder = model.bert, model.bert_encoder, model.predictor, model.text_encoder

    def forward(self, ids, style):
        lengths, mask = torch.full((1,), ids.shape[1], dtype=torch.long), torch.zeros_like(ids, dtype=torch.bool)
        hidden = self.bert_encoder(self.bert(ids, attention_mask=(~mask).int())).transpose(-1, -2)
        d = self.predictor.text_encoder(hidden, style, lengths, mask)
        x, _ = self.predictor.lstm(d)
        duration = torch.sigmoid(self.predictor.duration_proj(x)).sum(-1)
        pitch, energy = self.predictor.F0Ntrain(torch.repeat_interleave(d.transpose(-1, -2), 2, dim=2), style)
        return duration, pitch, energy, torch.repeat_interleave(self.text_encoder(ids, lengths, mask), 2, dim=2)


class Whole(torch.nn.Module):
    def __init__(self, model):
        super().__init__()
        self.encoder = Encoder(model)
        self.decoder = torch.nn.Module()
        self.decoder.decoder = model.decoder

    def forward(self, tokens, style):
        duration, pitch, energy, text = self.encoder(tokens, style[:, CONFIG["style_dim"] :])
        return self.decoder.decoder(text, pitch, energy, style[:, : CONFIG["style_dim"]]), duration


def write(folder, *names):
    path = os.path.join(ROOT, folder, *names)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    return path


def strip(path):
    """Without what no reader of weights looks at, which is most of a tiny model's file."""
    model = onnx.load(path)
    del model.graph.value_info[:]
    for node in model.graph.node:
        node.doc_string = ""
        del node.metadata_props[:]
    onnx.save(model, path)


def main():
    torch.manual_seed(SEED)
    model = ReferenceKokoro(CONFIG).eval()
    dump_kokoro.SEED = SEED
    dump_kokoro.randomise(model)
    weights = {n: p.detach().contiguous() for n, p in model.state_dict().items() if "position_ids" not in n and "stft" not in n}
    voices = {n: torch.randn(6, 1, 2 * CONFIG["style_dim"], generator=torch.Generator().manual_seed(i)) for i, n in enumerate(("af_one", "bm_two"))}
    shutil.rmtree(ROOT, ignore_errors=True)
    for folder in ("safetensors", "onnx", "onnx-int8", "pth"):
        json.dump(CONFIG, open(write(folder, "config.json"), "w"), ensure_ascii=False)
    save_file(weights, write("safetensors", "model.safetensors"))
    save_file(voices, write("safetensors", "voices.safetensors"))

    parts = {}
    for name, value in model.state_dict().items():
        part, rest = name.split(".", 1)
        if "stft" not in name:
            parts.setdefault(part, type(model.state_dict())())[f"module.{rest}"] = value
    torch.save(parts, write("pth", "kokoro-v1_0.pth"))
    for name, voice in voices.items():
        torch.save(voice, write("pth", "voices", f"{name}.pt"))

    from kokoro.custom_stft import CustomSTFT  # findable since ReferenceKokoro was made

    net = CONFIG["istftnet"]
    model.decoder.generator.stft = CustomSTFT(filter_length=net["gen_istft_n_fft"], hop_length=net["gen_istft_hop_size"], win_length=net["gen_istft_n_fft"])
    ids = torch.tensor([[0, 3, 7, 9, 20, 0]])
    whole = Whole(model).eval()
    path = write("onnx", "kokoro.onnx")
    torch.onnx.export(whole, (ids, voices["af_one"][0]), path, input_names=["tokens", "style"], output_names=["audio", "duration"], opset_version=17, dynamo=False)
    np.savez(write("onnx", "voices-v1.0.npz"), **{n: v.numpy() for n, v in voices.items()})
    os.rename(os.path.join(ROOT, "onnx", "voices-v1.0.npz"), os.path.join(ROOT, "onnx", "voices-v1.0.bin"))
    quantize_dynamic(path, write("onnx-int8", "kokoro.int8.onnx"), weight_type=QuantType.QUInt8)
    for one in (path, os.path.join(ROOT, "onnx-int8", "kokoro.int8.onnx")):
        strip(one)
        with open(one, "rb") as plain, gzip.GzipFile(one + ".gz", "wb", mtime=0) as packed:
            packed.write(plain.read())
        os.remove(one)
    for name, voice in voices.items():
        open(write("onnx-int8", "voices", f"{name}.bin"), "wb").write(voice.numpy().tobytes())


if __name__ == "__main__":
    main()
