#!/usr/bin/env python3
"""Writes a whole Kokoro as one ONNX graph for `npm run bench -- audio --part whole`: phoneme ids and a style in, durations and samples out.

    python test/tools/export_kokoro_onnx.py MODEL_FOLDER OUTPUT_FOLDER [TEXT]

The model folder is one in the layout of the hub's config.json with model.safetensors (models/parley-speech, or what dump_published.py wrote). Everything is f32.
The source has no noise, so that two runs can be compared, and the frames of the tokens are fixed at those of this text: a graph of known shapes is the best
case for a runtime. Fourier transforms are convolutions, as ONNX has no inverse one; they are those of torch.stft and torch.istft to rounding. input.json has what
to feed, the durations and the samples are in golden.safetensors. Needs torch, transformers, safetensors, onnx and the `kokoro` package from PyPI.
"""
import json
import sys
from pathlib import Path

import torch
import torch.nn.functional as F
from safetensors.torch import load_file, save_file

TEXT = "hello, brave world."
# `decoded` is what the vocoder is given.
OUTPUTS = ["duration", "decoded", "audio"]


class RealStft(torch.nn.Module):
    """The package's TorchSTFT without complex numbers: windows of n values every `hop`, reflected at both ends."""

    def __init__(self, n, hop):
        super().__init__()
        self.n, self.hop = n, hop
        bins = n // 2 + 1
        window = torch.hann_window(n, dtype=torch.float64)
        angle = 2 * torch.pi * torch.arange(bins, dtype=torch.float64)[:, None] * torch.arange(n, dtype=torch.float64)[None] / n
        weight = torch.full((bins, 1), 2.0, dtype=torch.float64)
        weight[0], weight[-1] = 1, 1
        forward = torch.cat([torch.cos(angle), -torch.sin(angle)]) * window
        inverse = torch.cat([weight * torch.cos(angle), -weight * torch.sin(angle)]) * window / n
        self.register_buffer("forward_weight", forward[:, None].float())
        self.register_buffer("inverse_weight", inverse[:, None].float())
        self.register_buffer("squares", (window**2)[None, None].float())

    def transform(self, signal):
        padded = F.pad(signal[:, None], (self.n // 2, self.n // 2), mode="reflect")
        real, imaginary = F.conv1d(padded, self.forward_weight, stride=self.hop).chunk(2, dim=1)
        # As ONNX has it, an angle of two zeros is no number, and silence has such.
        angle = torch.atan(imaginary / torch.where(real == 0, 1e-30, real))
        half = torch.where(imaginary < 0, -torch.pi, torch.pi)
        return torch.sqrt(real**2 + imaginary**2), torch.where(real < 0, angle + half, angle)

    def inverse(self, magnitude, phase):
        spectrum = torch.cat([magnitude * torch.cos(phase), magnitude * torch.sin(phase)], dim=1)
        summed = F.conv_transpose1d(spectrum, self.inverse_weight, stride=self.hop)
        windows = F.conv_transpose1d(torch.ones_like(spectrum[:, :1]), self.squares, stride=self.hop)
        middle = slice(self.n // 2, -(self.n // 2))
        return summed[..., middle] / windows[..., middle]


class Whole(torch.nn.Module):
    def __init__(self, model, frames):
        super().__init__()
        self.model = model
        self.register_buffer("index", torch.repeat_interleave(torch.arange(len(frames)), frames))

    def forward(self, ids, style):
        model = self.model
        decoder_style, prosody_style = style[:, : model.style_dim], style[:, model.style_dim :]
        lengths, mask = torch.tensor([ids.shape[1]]), torch.zeros(1, ids.shape[1], dtype=torch.bool)
        hidden = model.bert_encoder(model.bert(ids, attention_mask=torch.ones_like(ids)))
        d = model.predictor.text_encoder(hidden.transpose(-1, -2), prosody_style, lengths, mask)
        duration = torch.sigmoid(model.predictor.duration_proj(model.predictor.lstm(d)[0])).sum(-1)
        f0, energy = model.predictor.F0Ntrain(d.transpose(-1, -2)[:, :, self.index], prosody_style)
        text = model.text_encoder(ids, lengths, mask)[:, :, self.index]
        taps = {}
        tap = model.decoder.decode[-1].register_forward_hook(lambda _, __, y: taps.update(decoded=y))
        audio = model.decoder(text, f0, energy, decoder_style).reshape(1, -1)
        tap.remove()
        return duration, taps["decoded"], audio


def without_packing(torch_rnn):
    """Of one sentence nothing is padding: packed sequences are the sequences themselves."""
    torch_rnn.pack_padded_sequence = lambda x, *_, **__: x
    torch_rnn.pad_packed_sequence = lambda x, *_, **__: (x, None)


def near_zero(source):
    """Phases of thousands of turns, of which a GPU's sine knows little, are brought to half a turn first: what is summed stays as it is."""
    sine, waves = torch.sin, source._f02sine

    def reduced(f0):
        torch.sin = lambda x: sine(x - 2 * torch.pi * torch.round(x / (2 * torch.pi)))
        try:
            return waves(f0)
        finally:
            torch.sin = sine

    source._f02sine = reduced


def style_of(folder, width, phonemes):
    """Of the first voice for a sentence of so many phonemes, or what dump_published.py drew for its random weights."""
    if not (folder / "voices.safetensors").exists():
        return load_file(folder / "golden.safetensors")["style"].float()
    voices = load_file(folder / "voices.safetensors")
    rows = voices[min(voices)].float().reshape(-1, 2 * width)
    return rows[min(phonemes - 1, len(rows) - 1)][None]


def main():
    folder, output = Path(sys.argv[1]), Path(sys.argv[2])
    text = sys.argv[3] if len(sys.argv) > 3 else TEXT
    sys.argv = sys.argv[:1]  # check_checkpoints reads its own.
    from check_checkpoints import ReferenceKokoro

    config = json.loads((folder / "config.json").read_text())
    model = ReferenceKokoro(config).eval()
    model.load_state_dict({key: value.float() for key, value in load_file(folder / "model.safetensors").items()}, strict=False)
    for module in model.modules():
        if hasattr(module, "weight_g"):
            torch.nn.utils.remove_weight_norm(module)
    net = config["istftnet"]
    model.decoder.generator.stft = RealStft(net["gen_istft_n_fft"], net["gen_istft_hop_size"])
    torch.randn_like = torch.zeros_like
    torch.rand = torch.zeros
    without_packing(torch.nn.utils.rnn)
    ids = torch.tensor([[0, *(config["vocab"][letter] for letter in text), 0]])
    style = style_of(folder, config["style_dim"], ids.shape[1] - 2)
    near_zero(model.decoder.generator.m_source.l_sin_gen)
    with torch.no_grad():
        frames = model.stages(ids, style, torch.zeros)["pred_dur"]
        whole = Whole(model, frames).eval()
        output.mkdir(parents=True, exist_ok=True)
        names = dict(input_names=["ids", "style"], output_names=OUTPUTS)
        torch.onnx.export(whole, (ids, style), str(output / "model.onnx"), dynamo=False, opset_version=17, **names)
        # As the fixtures of the models are: sums of phases in f64.
        model.use_double_source()
        outputs = whole(ids, style)
    save_file({name: value.contiguous() for name, value in zip(OUTPUTS, outputs)}, output / "golden.safetensors")
    (output / "input.json").write_text(json.dumps(dict(ids=ids[0].tolist(), style=style[0].tolist())) + "\n")
    print(f"{ids.shape[1]} tokens, {int(frames.sum())} frames, {outputs[-1].shape[1]} samples")


if __name__ == "__main__":
    main()
