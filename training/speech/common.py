"""Shared helpers: wav IO, assembling the full model from the two checkpoints."""

import os
import numpy as np, soundfile, torch
import paths  # noqa: F401 (training/shared)
from model import Model, load_config
from safetensors.torch import load_file
from shared.work import WORK

SR = 24000


def wav_save(path, x):
    soundfile.write(path, np.clip(np.asarray(x), -1, 1), SR, "PCM_16")


def wav_load(path):
    """-> rate, samples"""
    x, sr = soundfile.read(path, dtype="float32")
    return sr, x


def part(state, name):
    """The tensors of one module of a state dict."""
    return {k[len(name) + 1:]: v for k, v in state.items() if k.startswith(name + ".")}


def assemble(decoder, prosody):
    """-> Model in eval mode, voices [V, 2*style_dim]; F0_proj brought to Hz"""
    m = Model(load_config()).eval()
    d = torch.load(decoder, map_location="cpu")["ema"]
    for name in ("text_encoder", "decoder"):
        getattr(m, name).load_state_dict(part(d, name))
    style = d["style.weight"].clone()
    if os.path.exists(prosody):
        p = torch.load(prosody, map_location="cpu")["ema"]
        for name in ("bert", "bert_encoder", "predictor"):
            getattr(m, name).load_state_dict(part(p, name))
        with torch.no_grad():
            m.predictor.F0_proj.weight.mul_(100)
            m.predictor.F0_proj.bias.mul_(100)
        style[:, m.sd:] = p["style.weight"]
    return m, style


def load_export(out=WORK + "/out"):
    """-> Model, {voice: style vector}"""
    m = Model(load_config(out + "/config.json")).eval()
    m.load_state_dict({k: v.float() for k, v in load_file(out + "/model.safetensors").items()})
    return m, {k: x.float().flatten() for k, x in load_file(out + "/voices.safetensors").items()}


def ids_of(tokens, vocab):
    return [0] + [vocab[c] for c in tokens] + [0]
